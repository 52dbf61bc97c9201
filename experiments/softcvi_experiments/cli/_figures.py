"""``softcvi reproduce``: the figures of the paper's main part."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

import softcvi_experiments as experiments
from softcvi.cli import Computing, Flag, say
from softcvi_experiments._settings import RecipeName
from softcvi_experiments.cli._options import (
    Flat,
    Integers,
    Names,
    folder_of,
    given,
    show,
    smaller,
)

_TASKS = Parameter(
    help="eight_schools, linear_regression, slcp, garch, garch_posteriordb, separated "
    "by commas (the paper's four)."
)
_METHODS = Parameter(
    help="softcvi-0.75, softcvi-1, softcvi-0, snis-fkl, snis-fkl-low-variance, elbo, "
    "elbo-stl, separated by commas (the paper's)."
)
_RUNS = Parameter(help="Runs of each task and method.")
_DATA_DIR = Parameter(help="Folder, or a mirror's address, with the reference files.")
_OUT = Parameter(help="Output folder (softcvi-reproduce-FIGURE).")
_QUICK = Parameter(help="A small form that takes minutes on two cores.")

Settings = Annotated[experiments.Settings, Flat]
_QUICK_RUNS, _QUICK_STEPS = 2, 1_000


def metrics(
    *,
    tasks: Annotated[Names, _TASKS] = None,
    methods: Annotated[Names, _METHODS] = None,
    runs: Annotated[int | None, _RUNS] = None,
    settings: Settings = experiments.Settings(),  # noqa: B008
    data_dir: Annotated[str | None, _DATA_DIR] = None,
    no_limit: Annotated[
        Flag, Parameter(help="Leave out the limit of the guide's family.")
    ] = False,
    quick: Annotated[Flag, _QUICK] = False,
    out: Annotated[Path | None, _OUT] = None,
    common: Computing = Computing(),  # noqa: B008
) -> None:
    """Coverage, log probability and mean accuracy of tasks and methods."""
    if quick:
        settings = smaller(settings, steps=_QUICK_STEPS)
        runs = _QUICK_RUNS if runs is None else runs
    options = given(tasks=tasks, methods=methods, runs=runs)
    if quick or no_limit:
        options["limits"] = False
    with folder_of("metrics", out) as folder:
        show(
            experiments.reproduce_metrics(
                folder, settings=settings, data_dir=data_dir, say=say, **options
            )
        )


def slcp(
    *,
    methods: Annotated[Names, _METHODS] = None,
    runs: Annotated[int | None, _RUNS] = None,
    settings: Settings = experiments.Settings(),  # noqa: B008
    data_dir: Annotated[str | None, _DATA_DIR] = None,
    quick: Annotated[Flag, _QUICK] = False,
    out: Annotated[Path | None, _OUT] = None,
    common: Computing = Computing(),  # noqa: B008
) -> None:
    """The four modes of SLCP beside reference draws, alpha 0 included."""
    settings = smaller(settings, steps=_QUICK_STEPS) if quick else settings
    with folder_of("slcp", out) as folder:
        show(
            experiments.reproduce_slcp(
                folder,
                settings=settings,
                data_dir=data_dir,
                say=say,
                **given(methods=methods, runs=runs),
            )
        )


def marginals(
    *,
    tasks: Annotated[Names, _TASKS] = None,
    methods: Annotated[Names, _METHODS] = None,
    settings: Settings = experiments.Settings(),  # noqa: B008
    data_dir: Annotated[str | None, _DATA_DIR] = None,
    quick: Annotated[Flag, _QUICK] = False,
    out: Annotated[Path | None, _OUT] = None,
    common: Computing = Computing(),  # noqa: B008
) -> None:
    """Box plots of every parameter of one run."""
    settings = smaller(settings, steps=_QUICK_STEPS) if quick else settings
    with folder_of("marginals", out) as folder:
        show(
            experiments.reproduce_marginals(
                folder,
                settings=settings,
                data_dir=data_dir,
                say=say,
                **given(tasks=tasks, methods=methods),
            )
        )


def particles(
    *,
    tasks: Annotated[Names, _TASKS] = None,
    methods: Annotated[Names, _METHODS] = None,
    runs: Annotated[int | None, _RUNS] = None,
    particles: Annotated[
        Integers, Parameter(help="Values of K, separated by commas (2,4,8,16,32,64).")
    ] = None,
    steps: Annotated[int, Parameter(help="Optimisation steps.")] = 50_000,
    recipe: Annotated[RecipeName, Parameter(help="Recipe of the fits.")] = "paper",
    reference: Annotated[
        str, Parameter(help="Reference draws: builtin or posteriordb-sbibm.")
    ] = "builtin",
    seed: Annotated[int, Parameter(help="Seed of data, start values and fits.")] = 0,
    data_dir: Annotated[str | None, _DATA_DIR] = None,
    quick: Annotated[Flag, _QUICK] = False,
    out: Annotated[Path | None, _OUT] = None,
    common: Computing = Computing(),  # noqa: B008
) -> None:
    """Quality and time against K, and the metrics of two variants."""
    # K is what the figure varies, so it is no setting here.
    settings = experiments.Settings(
        steps=steps, recipe=recipe, reference=reference, seed=seed
    )
    if quick:
        settings = smaller(settings, steps=_QUICK_STEPS)
        runs = _QUICK_RUNS if runs is None else runs
        particles = (2, 8) if particles is None else particles
    options = given(tasks=tasks, methods=methods, runs=runs, particles=particles)
    with folder_of("particles", out) as folder:
        show(
            experiments.reproduce_particles(
                folder, settings=settings, data_dir=data_dir, say=say, **options
            )
        )
