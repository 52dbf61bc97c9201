"""Coordinates of hierarchical variables, chosen by what the data say of them."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Array

from softcvi.targets import AbstractSpace, Informed, SpaceOfModel, Structure

# Geometric mean of the standard deviations of standardised coordinates below which the
# data rather than the prior determine a vector.
_INFORMED_SPREAD = 0.5


class Prior(NamedTuple):
    """Location and scale of a variable on the real line, given its parents.

    Attributes:
        location: Its location.
        scale: Its scale, or the lower triangular factor of its covariance.
        is_matrix: Whether the scale is such a factor.

    Example:
        >>> Prior(0.0, 1.0).is_matrix
        False
    """

    location: Array | float
    scale: Array | float
    is_matrix: bool = False


def space_by_data(
    priors: Mapping[str, Prior],
    mean: Mapping[str, Array],
    spread: Mapping[str, Array],
) -> SpaceOfModel:
    """The coordinates for standardised variables that a start has found.

    Args:
        priors: Prior of each of them at what was found.
        mean: What was found, standardised.
        spread: Standard deviations, given all other variables.

    Example:
        >>> found = {"a": np.ones(2)}, {"a": np.full(2, 0.5)}
        >>> space_by_data({"a": Prior(3.0, 2.0)}, *found).informed["a"].centre.round(2)
        Array([5.67, 5.67], dtype=float32)
    """
    decentred, informed = [], {}
    for name, prior in priors.items():
        if not prior.is_matrix:
            decentred.append(name)
            data = Informed.of(mean[name], spread[name], prior.location, prior.scale)
            if data is not None:
                informed[name] = data
        elif np.exp(np.mean(np.log(spread[name]))) > _INFORMED_SPREAD:
            decentred.append(name)
    return SpaceOfModel(tuple(decentred), informed)


def standardised_sites(
    structure: Structure, space: AbstractSpace
) -> dict[str, np.ndarray] | None:
    """Which scalars are standardised, by name; None where the data have chosen.

    Args:
        structure: Structure of a particle.
        space: Its space, which may have standardised sites.

    Example:
        >>> structure = Structure({"a": np.zeros(2), "b": np.zeros(())})
        >>> standardised_sites(structure, SpaceOfModel(("a",)))["a"].tolist()
        [True, True]
    """
    names = getattr(space, "decentred", ())
    if not names or getattr(space, "informed", {}) or not structure.is_continuous:
        return None
    return {n: np.full(leaf.shape, n in names) for n, leaf in structure.like.items()}
