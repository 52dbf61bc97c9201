"""``softcvi reproduce``: the appendix's figures, and the studies beyond the paper."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

import softcvi_experiments
from softcvi.cli import Computing, Flag, say
from softcvi.fitting import Lines
from softcvi_experiments import appendix
from softcvi_experiments._settings import RecipeName
from softcvi_experiments.cli._figures import (
    _DATA_DIR,
    _METHODS,
    _OUT,
    _QUICK,
    _RUNS,
    _TASKS,
)
from softcvi_experiments.cli._options import (
    Flat,
    Floats,
    Integers,
    Names,
    folder_of,
    given,
    show,
    smaller,
)

_SEED = Parameter(help="Seed.")


@dataclass(frozen=True)
class StudySettings(softcvi_experiments.Settings):
    """Settings of the studies, which are made with our own recipe.

    Example:
        >>> StudySettings().recipe
        'default'
    """

    steps: int = 10_000
    recipe: RecipeName = "default"


def snr(
    *,
    values: Annotated[int, Parameter(help="Values of a parameter.")] = 200,
    gradients: Annotated[int, Parameter(help="Gradients at each value.")] = 5_000,
    methods: Annotated[Names, _METHODS] = None,
    seed: Annotated[int, _SEED] = 0,
    quick: Annotated[Flag, _QUICK] = False,
    out: Annotated[Path | None, _OUT] = None,
    common: Computing = Computing(),  # noqa: B008
) -> None:
    """Signal, noise and their ratio of gradients on a toy normal."""
    if quick:
        values = 48 if values == 200 else values
        gradients = 500 if gradients == 5_000 else gradients
    with folder_of("snr", out) as folder:
        show(
            appendix.reproduce_snr(
                folder,
                num_values=values,
                num_gradients=gradients,
                seed=seed,
                say=say,
                **given(methods=methods),
            )
        )


def neural_additive(
    *,
    methods: Annotated[Names, _METHODS] = None,
    widths: Annotated[Integers, Parameter(help="Hidden units (50,100).")] = None,
    rates: Annotated[
        Floats, Parameter(help="Learning rates (5e-5,1e-4,5e-4,1e-3).")
    ] = None,
    runs: Annotated[int | None, Parameter(help="Number of seeds (10).")] = None,
    seed: Annotated[int, Parameter(help="The first seed.")] = 0,
    settings: Annotated[appendix.AdditiveSettings, Flat] = appendix.AdditiveSettings(),  # noqa: B008
    quick: Annotated[Flag, _QUICK] = False,
    out: Annotated[Path | None, _OUT] = None,
    common: Computing = Computing(),  # noqa: B008
) -> None:
    """The Bayesian neural additive model's table and components."""
    small = {"widths": (50,), "rates": (1e-3, 5e-3), "num_seeds": 2} if quick else {}
    if quick:
        settings = smaller(settings, steps=2_000, num_draws=300)
    options = given(methods=methods, widths=widths, rates=rates, num_seeds=runs)
    with folder_of("neural-additive", out) as folder:
        show(
            appendix.reproduce_neural_additive(
                folder,
                settings=settings,
                seed=seed,
                reporter=Lines(every=30.0),
                say=say,
                **{**small, **options},
            )
        )


def vae(
    *,
    methods: Annotated[Names, _METHODS] = None,
    settings: Annotated[appendix.VaeSettings, Flat] = appendix.VaeSettings(),  # noqa: B008
    data_dir: Annotated[
        str | None, Parameter(help="Folder with the files of MNIST.")
    ] = None,
    quick: Annotated[Flag, _QUICK] = False,
    out: Annotated[Path | None, _OUT] = None,
    common: Computing = Computing(),  # noqa: B008
) -> None:
    """Autoencoders: decoded manifolds, embeddings and test bounds."""
    if quick:
        settings = smaller(
            settings,
            steps=5_000,
            batch_size=32,
            rate=1e-3,
            hidden=(128, 64),
            bound_draws=100,
        )
    with folder_of("vae", out) as folder:
        show(
            appendix.reproduce_vae(
                folder,
                settings=settings,
                data_dir=data_dir,
                say=say,
                **given(methods=methods),
            )
        )


def negatives(
    *,
    tasks: Annotated[Names, _TASKS] = None,
    runs: Annotated[int | None, _RUNS] = None,
    settings: Annotated[
        softcvi_experiments.Settings, Flat
    ] = softcvi_experiments.Settings(),  # noqa: B008
    data_dir: Annotated[str | None, _DATA_DIR] = None,
    quick: Annotated[Flag, _QUICK] = False,
    out: Annotated[Path | None, _OUT] = None,
    common: Computing = Computing(),  # noqa: B008
) -> None:
    """posterior^alpha beside proposal^alpha as negative."""
    if quick:
        settings = smaller(settings, steps=2_000)
        runs = 2 if runs is None else runs
    with folder_of("negatives", out) as folder:
        show(
            appendix.reproduce_negatives(
                folder,
                settings=settings,
                data_dir=data_dir,
                say=say,
                **given(tasks=tasks, runs=runs),
            )
        )


def studies(
    *,
    study: Annotated[
        Literal["divergences", "temperature", "smoothing", "proposals", "alpha"],
        Parameter(help="Which study."),
    ],
    tasks: Annotated[Names, _TASKS] = None,
    runs: Annotated[int | None, _RUNS] = None,
    settings: Annotated[StudySettings, Flat] = StudySettings(),  # noqa: B008
    data_dir: Annotated[str | None, _DATA_DIR] = None,
    quick: Annotated[Flag, _QUICK] = False,
    out: Annotated[Path | None, _OUT] = None,
    common: Computing = Computing(),  # noqa: B008
) -> None:
    """Divergences, temperature, smoothing, proposals or alpha."""
    if quick:
        settings = smaller(settings, steps=1_000)
        runs = 2 if runs is None else runs
    with folder_of("studies", out) as folder:
        show(
            appendix.reproduce_study(
                folder,
                study=study,
                settings=settings,
                data_dir=data_dir,
                say=say,
                **given(tasks=tasks, runs=runs),
            )
        )
