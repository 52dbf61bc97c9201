"""``softcvi fit``: a model in a file, and everything that comes out of it."""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from softcvi.cli._common import Computing, Flag, ImportLimit
from softcvi.cli._errors import CommandError
from softcvi.cli._reading import READING_SECONDS

_EPILOG = """\
models (found out by looking at the file; --kind overrules):
  a NumPyro model    def model(y, sigma): ...        data by name
  a PyMC model       a pymc.Model, or a function that returns one
  a Stan program     model.stan, with --data         no NAME needed
  a log density      def log_prob(theta): ...        with `like` beside it, one
                     def log_prob(theta, data): ...  point; `space` is optional
  a softcvi target   or a function that returns one

files written to --out:
  posterior.softcvi  the fitted guide, for softcvi.load
  draws.csv          4000 draws of the answer: those that the verdict is about
  draws.nc           the same draws as netCDF, for ArviZ
  result.json        verdict, estimates, history, settings and versions
  report.html        all of it to look at

exit code: 0 also for an answer that is not trusted; scripts read the verdict:
  softcvi fit model.py:model --quiet --json | jq -e '.level == "trusted"'

examples:
  softcvi fit model.py:model --data data.json
  softcvi fit model.py:model --data data.csv --guide flow --out flow
  softcvi fit density.py:log_prob --objective elbo --quiet --json
  softcvi fit model.py:model --data data.json --resume      after Ctrl-C
"""
app = App(
    name="fit",
    help="Fit a model in a file and write posterior, draws and a report.",
    help_epilogue=_EPILOG,
)
Guide = Literal[
    "auto", "mean-field", "full-rank", "low-rank", "student-t", "flow", "coupling"
]


@Parameter(name="*", group="Method")
@dataclasses.dataclass(frozen=True)
class Method:
    """Everything that decides a fit, besides the model and its data."""

    kind: Literal["auto", "numpyro", "pymc", "density", "target"] = "auto"
    """What the model is."""
    guide: Guide = "auto"
    """Family of the guide."""
    objective: Literal["softcvi", "elbo", "snis-fkl"] = "softcvi"
    """What is minimised."""
    alpha: float | None = None
    """SoftCVI's negative: the proposal to this power (0.75)."""
    particles: int | None = None
    """Particles per step, K (8)."""
    steps: int = 10_000
    """Optimisation steps."""
    seed: int = 0
    """Seed of all random numbers."""
    starts: int = 1
    """Start from this many places."""
    until_khat: float | None = None
    """Try richer and richer guides until k-hat is this small, such as 0.7."""
    x64: Flag = False
    """Double precision."""

    def __post_init__(self) -> None:
        if self.objective != "softcvi" and self.alpha is not None:
            raise CommandError(f"--alpha: {self.objective} has none. Leave it out.")
        names = [
            f"--{field.name}"
            for field in dataclasses.fields(self)
            if field.name in ("guide", "objective", "alpha", "particles", "starts")
            and getattr(self, field.name) != field.default
        ]
        if self.until_khat is not None and names:
            raise CommandError(
                "--until-khat: chooses the guides itself, and how to fit them. Leave "
                f"out {', '.join(names)}."
            )

    def recorded(self) -> dict[str, object]:
        """What the record of a fit keeps: all but what was left out."""
        told = dataclasses.asdict(self)
        return {name: value for name, value in told.items() if value is not None}


@Parameter(name="*", group="Output")
@dataclasses.dataclass(frozen=True)
class Output:
    """Where a fit is written, and what is printed."""

    out: Path = Path("softcvi-fit")
    """Folder for what is written."""
    reference: Path | None = None
    """Draws taken as the truth, for the report: CSV, NPZ or JSON."""
    resume: Flag = False
    """Continue from the checkpoint in --out."""
    overwrite: Flag = False
    """Replace a fit that is in --out."""
    quiet: Flag = False
    """No progress and no summary."""
    json: Flag = False
    """Print result.json instead of a summary."""

    def __post_init__(self) -> None:
        if self.resume and self.overwrite:
            raise CommandError("--resume, --overwrite: give one of the two.")


@app.default
def fit(
    model: Annotated[
        str,
        Parameter(
            name="FILE.py:NAME",
            metavar="FILE.py:NAME",
            help="The model (:model if NAME is left out), or FILE.stan.",
        ),
    ],
    /,
    *,
    data: Annotated[
        Path | None, Parameter(help="Data by name: JSON, CSV, NPZ or R dump.")
    ] = None,
    import_limit: ImportLimit = READING_SECONDS,
    method: Method = Method(),  # noqa: B008
    output: Output = Output(),  # noqa: B008
    common: Computing = Computing(),  # noqa: B008
) -> int:
    """Fit a model in a file and write posterior, draws and a report."""
    # What follows takes a second to import, which --help should not.
    from softcvi.cli._fit_run import run_fit
    from softcvi.cli._model_file import ModelFile
    from softcvi.cli._progress import double_precision

    # Stan computes in double precision, and its users expect it.
    with double_precision(method.x64 or model.endswith(".stan")):
        file = ModelFile.parse(model, data, import_limit)
        return run_fit(file, method, output)
