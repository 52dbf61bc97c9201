"""``softcvi fit``: a model in a Python file, and everything that comes out of it."""

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path

_EPILOG = """\
models (found out by looking at the file; --kind overrules):
  a NumPyro model    def model(y, sigma): ...        data by name
  a PyMC model       a pymc.Model, or a function that returns one
  a log density      def log_prob(theta): ...        with `like` beside it, one point;
                     def log_prob(theta, data): ...  `space` beside it is optional
  a softcvi target   or a function that returns one

files written to --out:
  posterior.softcvi  the fitted posterior, for softcvi.load
  draws.csv          4000 draws with their log weights
  draws.nc           draws as netCDF, for ArviZ
  result.json        verdict, estimates, history, settings and versions
  report.html        all of it to look at

exit code: 0 also for an answer that is not trusted; a script looks at the verdict:
  softcvi fit model.py:model --quiet --json | jq -e '.level == "trusted"'

examples:
  softcvi fit model.py:model --data data.json
  softcvi fit model.py:model --data data.csv --guide flow --steps 20000 --out flow
  softcvi fit density.py:log_prob --objective elbo --quiet --json
  softcvi fit model.py:model --data data.json --resume      after Ctrl-C
"""
_GUIDES = (
    "auto",
    "mean-field",
    "full-rank",
    "low-rank",
    "student-t",
    "flow",
    "coupling",
)
_OBJECTIVES = ("softcvi", "elbo", "snis-fkl")
DEFAULT_PARTICLES = 8
DEFAULT_ALPHA = 0.75


def add_fit_parser(commands) -> None:
    """Add the command.

    Args:
        commands: What ``add_subparsers`` returned.

    Example:
        >>> parser = argparse.ArgumentParser()
        >>> add_fit_parser(parser.add_subparsers())
        >>> parser.parse_args(["fit", "model.py:model", "--guide", "flow"]).guide
        'flow'
    """
    parser = commands.add_parser(
        "fit",
        help="fit a NumPyro model, a PyMC model or a log density in a Python file",
        description="Fit a model in a Python file and write posterior, draws and a "
        "report.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "model", metavar="FILE.py:NAME", help="the model (:model if NAME is left out)"
    )
    parser.add_argument(
        "--data", type=Path, metavar="FILE", help="data: JSON, CSV or NPZ, by name"
    )
    parser.add_argument(
        "--kind",
        choices=("auto", "numpyro", "pymc", "density", "target"),
        default="auto",
        help="what the model is (%(default)s)",
    )
    method = parser.add_argument_group("method")
    method.add_argument(
        "--guide", choices=_GUIDES, default="auto", help="family (%(default)s)"
    )
    method.add_argument(
        "--objective", choices=_OBJECTIVES, default="softcvi", help="(%(default)s)"
    )
    method.add_argument(
        "--alpha",
        type=float,
        help=f"SoftCVI's negative: proposal to this power ({DEFAULT_ALPHA})",
    )
    method.add_argument(
        "--particles", type=int, metavar="K", help=f"a step ({DEFAULT_PARTICLES})"
    )
    method.add_argument("--steps", type=int, default=10_000, help="(%(default)s)")
    method.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    method.add_argument(
        "--starts", type=int, default=1, help="start from so many places (%(default)s)"
    )
    method.add_argument(
        "--until-khat",
        type=float,
        metavar="K",
        help="try richer and richer guides until k-hat is this small, such as 0.7",
    )
    method.add_argument("--x64", action="store_true", help="double precision")
    files = parser.add_argument_group("output")
    files.add_argument(
        "--out",
        type=Path,
        default=Path("softcvi-fit"),
        help="folder for what is written (%(default)s)",
    )
    files.add_argument(
        "--reference",
        type=Path,
        metavar="FILE",
        help="draws taken as the truth, for the report: CSV, NPZ or JSON",
    )
    files.add_argument(
        "--resume", action="store_true", help="go on from the checkpoint in --out"
    )
    files.add_argument(
        "--overwrite", action="store_true", help="replace a fit that is in --out"
    )
    files.add_argument(
        "--quiet", action="store_true", help="no progress and no summary"
    )
    files.add_argument(
        "--json", action="store_true", help="print result.json instead of a summary"
    )
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    # What follows takes a second to import, which --help should not.
    from softcvi.cli._fit_run import run_fit

    with _precision(args.x64):
        return run_fit(args)


@contextlib.contextmanager
def _precision(x64: bool) -> Iterator[None]:
    import jax

    before = jax.config.jax_enable_x64
    if x64:
        jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)
