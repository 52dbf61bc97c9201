"""The commands and what they are for; what they do is loaded when they are called."""

from cyclopts import App

from softcvi_experiments.cli._bench import run

_FIGURES = {
    "metrics": "coverage, log probability and mean accuracy of tasks and methods",
    "slcp": "the four modes of SLCP beside reference draws, alpha 0 included",
    "marginals": "box plots of every parameter of one run",
    "particles": "quality and time against K, and the metrics of two variants",
    "snr": "signal, noise and their ratio of gradients on a toy normal",
    "neural-additive": "the Bayesian neural additive model's table and components",
    "vae": "autoencoders: decoded manifolds, embeddings and test bounds",
    "negatives": "posterior^alpha beside proposal^alpha as negative",
    "studies": "divergences, temperature, smoothing, proposals or alpha (--study)",
}
_ACTIONS = {
    "list": "what is available, with R-hat, effective sample size and provenance",
    "fetch": "download the paper's references (posteriordb, sbibm) and check them",
    "build": "make our own again, as those in the package were made (15 minutes)",
}
_HERE = "softcvi_experiments.cli"

reproduce = App(
    name="reproduce",
    help="Make the paper's figures and compare our numbers with the published ones.",
    help_epilogue="""\
examples:
  softcvi reproduce metrics --runs 4 --steps 10000
  softcvi reproduce metrics --recipe default --tasks slcp --methods softcvi-0.75
  softcvi reproduce metrics --reference posteriordb-sbibm --data-dir reference
  softcvi reproduce slcp --runs 6
  softcvi reproduce snr --quick
  softcvi reproduce neural-additive --methods elbo,softcvi-1 --widths 50
  softcvi reproduce vae --images mnist --batch-size 100 --steps 30000
  softcvi reproduce studies --study alpha --runs 20 --steps 10000

All accept --traceback. Finished fits are recorded in the output folder: an
interrupted command, given again, continues where it stopped.
""",
)
references = App(
    name="references",
    help="Build, list or fetch the draws that fits are judged by.",
    help_epilogue="""\
examples:
  softcvi references list
  softcvi references fetch
  softcvi references fetch --data-dir https://mirror.example/reference
  softcvi references build --out references --only slcp_01,slcp_02
  softcvi reproduce metrics --data-dir references

All accept --traceback.
""",
)
bench = App(
    name="bench",
    help="Measure speed and quality beside other libraries; every number in the README "
    "comes from here.",
    help_epilogue="""\
suites:
  peers    steps beside other libraries, our overhead, the race with NUTS
  growth   how time and memory grow with all that can grow
  compile  what imports and compilation cost, cold and cached
  figure   the paper's main figure: one fit, many at once, the whole
  zoo      28 models, every default method, judged by references

examples:
  softcvi bench --suite peers --out softcvi-bench
  softcvi bench --suite figure --fits 50 --full
  softcvi bench --suite growth --parts memory --quick
  softcvi bench --redraw results/bench/peers.json
  softcvi bench --suite zoo --models banana,funnel --seeds 0,1
""",
)

for _names, _module, _parent in (
    (_FIGURES, "_reproduce", reproduce),
    (_ACTIONS, "_references", references),
):
    for _name, _text in _names.items():
        _function = _name.replace("-", "_")
        _path = f"{_HERE}.{_module}:{_function}"
        _parent.command(_path, name=_name, help=_text)
bench.default(run)
