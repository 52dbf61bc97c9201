"""The Stan programs of the study, by name."""

import zlib
from pathlib import Path

import numpy as np

from softcvi.adapters import StanTarget, from_stan
from softcvi_experiments.stan._data import SIMULATORS as SMALL
from softcvi_experiments.stan._data import Data
from softcvi_experiments.stan._data_further import FURTHER_SIMULATORS
from softcvi_experiments.stan._data_latent import LATENT_SIMULATORS
from softcvi_experiments.stan._data_reference import FILES, REFERENCE_SIMULATORS

SIMULATORS = {
    **SMALL,
    **LATENT_SIMULATORS,
    **REFERENCE_SIMULATORS,
    **FURTHER_SIMULATORS,
}
FOLDER = Path(__file__).parent / "programs"


def names() -> tuple[str, ...]:
    """All programs.

    Example:
        >>> from softcvi_experiments import stan
        >>> "garch11" in stan.names()
        True
    """
    return tuple(sorted(SIMULATORS))


def path(name: str) -> Path:
    """The file of a program.

    Args:
        name: One of ``names()``.

    Example:
        >>> from softcvi_experiments import stan
        >>> stan.path("garch11").name
        'garch11.stan'
    """
    if name not in SIMULATORS:
        raise ValueError(
            f"name: unknown program {name!r}; one of {', '.join(names())}."
        )
    return FOLDER / f"{FILES.get(name, name)}.stan"


def data(name: str) -> Data:
    """Data of a program, simulated from a seed of its own.

    Args:
        name: One of ``names()``.

    Example:
        >>> from softcvi_experiments import stan
        >>> stan.data("garch11")["T"]
        200
    """
    path(name)
    return SIMULATORS[name](np.random.default_rng(zlib.crc32(name.encode())))


def target(name: str) -> StanTarget:
    """The posterior of a program, compiled if that was not done before.

    Args:
        name: One of ``names()``.

    Example:
        >>> from softcvi_experiments import stan
        >>> stan.target("garch11").shapes[0]  # doctest: +SKIP
        ('mu', ())
    """
    return from_stan(path(name), data(name))
