"""``softcvi reproduce``: one driver for all figures and studies.

A figure is a function of the experiments, the options that it takes, and the smaller
values of its quick form. Flags, help and messages follow from these.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

from cyclopts import Parameter

import softcvi_experiments as experiments
from softcvi.cli import Computing, Flag, hold_folder, say
from softcvi.fitting import Lines
from softcvi_experiments import appendix
from softcvi_experiments._methods import NegativeName
from softcvi_experiments._settings import RecipeName
from softcvi_experiments.cli._options import (
    Flat,
    Floats,
    Integers,
    Names,
    given,
    smaller,
)

_STUDIES = Literal["divergences", "temperature", "smoothing", "proposals", "alpha"]
# Options by the name that the experiments' functions have for them.
_OPTIONS: dict[str, Any] = {
    "study": Annotated[_STUDIES, Parameter(help="Which study.")],
    "tasks": Annotated[
        Names,
        Parameter(
            help="eight_schools, linear_regression, slcp, garch, garch_posteriordb, "
            "separated by commas (the paper's four)."
        ),
    ],
    "methods": Annotated[
        Names,
        Parameter(
            help="softcvi-0.75, softcvi-1, softcvi-0, snis-fkl, "
            "snis-fkl-low-variance, elbo, elbo-stl, separated by commas (the paper's)."
        ),
    ],
    "runs": Annotated[int | None, Parameter(help="Runs of each task and method.")],
    "particles": Annotated[
        Integers, Parameter(help="Values of K, separated by commas (2,4,8,16,32,64).")
    ],
    "num_values": Annotated[
        int | None, Parameter(name="--values", help="Values of a parameter (200).")
    ],
    "num_gradients": Annotated[
        int | None,
        Parameter(name="--gradients", help="Gradients at each value (5000)."),
    ],
    "widths": Annotated[Integers, Parameter(help="Hidden units (50,100).")],
    "rates": Annotated[Floats, Parameter(help="Learning rates (5e-5,1e-4,5e-4,1e-3).")],
    "num_seeds": Annotated[
        int | None, Parameter(name="--runs", help="Number of seeds (10).")
    ],
    "seed": Annotated[int | None, Parameter(help="The first seed (0).")],
    "limits": Annotated[
        bool | None,
        Parameter(
            name="--limits",
            negative="--no-limit",
            help="Fit the guide's family to reference draws as well.",
        ),
    ],
    "data_dir": Annotated[
        str | None,
        Parameter(help="Folder, or a mirror's address, with the files of data."),
    ],
}
_QUICK = Parameter(help="A small form that takes minutes on two cores.")
_OUT = Parameter(help="Output folder (softcvi-reproduce-FIGURE).")
_REQUIRED = "study"


@dataclass(frozen=True)
class ParticleSettings(experiments.Settings):
    """Settings of a figure that varies K and the negative itself.

    Example:
        >>> ParticleSettings().num_particles
        8
    """

    num_particles: Annotated[int, Parameter(parse=False)] = 8
    negative: Annotated[NegativeName, Parameter(parse=False)] = "proposal"


@dataclass(frozen=True)
class StudySettings(experiments.Settings):
    """Settings of the studies, which are made with our own recipe.

    Example:
        >>> StudySettings().recipe
        'default'
    """

    steps: int = 10_000
    recipe: RecipeName = "default"


@dataclass(frozen=True)
class Figure:
    """A figure or study that can be made again.

    Args:
        module: Where its function is.
        function: Name of the function, called with the output folder and the options.
        options: Names of its options.
        settings: Class of its settings, if it has any.
        quick: Values of the quick form, for what the user leaves open.
        fixed: Arguments that are always the same.

    Example:
        >>> Figure(experiments, "reproduce_slcp", ("runs",)).options
        ('runs',)
    """

    module: ModuleType
    function: str
    options: tuple[str, ...]
    settings: type | None = experiments.Settings
    quick: Mapping[str, Any] | None = None
    fixed: Mapping[str, Any] | None = None


def _command(name: str, figure: Figure) -> Callable[..., None]:
    """A function with the figure's options as its signature."""

    def run(
        settings: Any = None,
        quick: bool = False,
        out: Path | None = None,
        common: Computing | None = None,
        **told: Any,
    ) -> None:
        options = given(**told)
        if quick:
            small = dict(figure.quick or {})
            options = {k: small.pop(k) for k in figure.options if k in small} | options
            settings = smaller(settings, **small) if settings else None
        if settings is not None:
            options["settings"] = settings
        folder = out or Path(f"softcvi-reproduce-{name}")
        with hold_folder(folder):
            make = getattr(figure.module, figure.function)
            made = make(folder, say=say, **(figure.fixed or {}), **options)
        if made.table:
            say(made.table)
        say("written: " + ", ".join(str(path) for path in dict.fromkeys(made.files)))

    types: dict[str, tuple[Any, Any]] = {
        option: (_OPTIONS[option], inspect.Parameter.empty)
        if option == _REQUIRED
        else (_OPTIONS[option], None)
        for option in figure.options
    }
    if figure.settings is not None:
        types["settings"] = Annotated[figure.settings, Flat], figure.settings()
    types["quick"] = Annotated[Flag, _QUICK], False
    types["out"] = Annotated[Path | None, _OUT], None
    types["common"] = Computing, Computing()
    parameters = [
        inspect.Parameter(
            key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
        )
        for key, (kind, default) in types.items()
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {key: kind for key, (kind, _) in types.items()}
    run.__name__ = name
    return run


_FITS = ("tasks", "methods", "runs", "data_dir")
_FEW = {"runs": 2, "steps": 1_000}
FIGURES = {
    "metrics": Figure(
        experiments,
        "reproduce_metrics",
        (*_FITS, "limits"),
        quick={**_FEW, "limits": False},
    ),
    "slcp": Figure(
        experiments,
        "reproduce_slcp",
        ("methods", "runs", "data_dir"),
        quick={"steps": 1_000},
    ),
    "marginals": Figure(
        experiments,
        "reproduce_marginals",
        ("tasks", "methods", "data_dir"),
        quick={"steps": 1_000},
    ),
    "particles": Figure(
        experiments,
        "reproduce_particles",
        (*_FITS, "particles"),
        ParticleSettings,
        quick={**_FEW, "particles": (2, 8)},
    ),
    "snr": Figure(
        appendix,
        "reproduce_snr",
        ("num_values", "num_gradients", "methods", "seed"),
        None,
        quick={"num_values": 48, "num_gradients": 500},
    ),
    "neural-additive": Figure(
        appendix,
        "reproduce_neural_additive",
        ("methods", "widths", "rates", "num_seeds", "seed"),
        appendix.AdditiveSettings,
        quick={
            "widths": (50,), "rates": (1e-3, 5e-3), "num_seeds": 2, "steps": 2_000,
            "num_draws": 300,
        },
        fixed={"reporter": Lines(every=30.0)},
    ),
    "vae": Figure(
        appendix,
        "reproduce_vae",
        ("methods", "data_dir"),
        appendix.VaeSettings,
        quick={
            "steps": 5_000, "batch_size": 32, "rate": 1e-3, "hidden": (128, 64),
            "bound_draws": 100,
        },
    ),
    "negatives": Figure(
        appendix,
        "reproduce_negatives",
        ("tasks", "runs", "data_dir"),
        quick={"runs": 2, "steps": 2_000},
    ),
    "studies": Figure(
        appendix,
        "reproduce_study",
        ("study", "tasks", "runs", "data_dir"),
        StudySettings,
        quick=_FEW,
    ),
}  # fmt: skip
COMMANDS = {name: _command(name, figure) for name, figure in FIGURES.items()}


def __getattr__(name: str) -> Callable[..., None]:
    # Commands are named by import paths, and loaded when they are called.
    try:
        return COMMANDS[name.replace("_", "-")]
    except KeyError:
        raise AttributeError(name) from None
