"""Coordinates of hierarchical variables, chosen by what the data say of them."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Array

from softcvi.targets import AbstractSpace, Informed, SpaceOfModel, Structure

# Geometric mean of the standard deviations of standardised coordinates below which the
# data rather than the prior determine a vector.
_INFORMED_SPREAD = 0.5
# Of a measured variable the distance from its location varies more than itself, as the
# location is uncertain too. Where it varies by less than this share, only the distance
# was measured.
_GOES_WITH = 0.5

# Numbers in a series up to which it is fitted by its steps. As written, the Hessian of
# a longer one has few entries, by steps all of them.
LONGEST_BY_STEPS = 200


class Prior(NamedTuple):
    """Location and scale of a variable on the real line, given its parents.

    Attributes:
        location: Its location.
        scale: Its scale, or the lower triangular factor of its covariance.
        is_matrix: Whether the members are standardised together, by such a factor or,
            in a series, each given those before it.

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
    *,
    relative: frozenset[str] = frozenset(),
) -> SpaceOfModel:
    """The coordinates for standardised variables that a start has found.

    Args:
        priors: Prior of each of them at what was found.
        mean: What was found, standardised.
        spread: Standard deviations, given all other variables.
        relative: Those of which the data only tell the difference from the location.

    Example:
        >>> found = {"a": np.ones(2)}, {"a": np.full(2, 0.5)}
        >>> space_by_data({"a": Prior(3.0, 2.0)}, *found).informed["a"].centre.round(2)
        Array([5.67, 5.67], dtype=float32)
    """
    decentred, informed = [], {}
    for name, prior in priors.items():
        if not prior.is_matrix:
            decentred.append(name)
            found = mean[name], spread[name], prior.location, prior.scale
            data = Informed.of(*found, is_relative=name in relative)
            if data is not None:
                informed[name] = data
        elif np.exp(np.mean(np.log(spread[name]))) > _INFORMED_SPREAD:
            decentred.append(name)
    return SpaceOfModel(tuple(decentred), informed)


def goes_with(values: Array, locations: Array) -> bool:
    """Whether a variable is known relative to its location rather than itself.

    Args:
        values: Draws of its members, by rows.
        locations: Their locations, one for each or one for all.

    Example:
        >>> level = np.linspace(-9, 9, 19)[:, None]
        >>> goes_with(level + np.array([0.1, 0.2]), level)
        True
    """
    values = np.asarray(values, np.float64)
    away = values - np.asarray(locations, np.float64)
    # Quartiles, as a scale that the start knows badly gives a few draws far out.
    own, rest = (np.subtract(*np.quantile(v, (0.75, 0.25), 0)) for v in (values, away))
    return bool(np.median(rest) < _GOES_WITH * np.median(own))


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
    chosen = space.stored()
    if not isinstance(chosen, SpaceOfModel) or not structure.is_continuous:
        return None
    names = chosen.decentred
    if not names or chosen.informed:
        return None
    return {n: np.full(leaf.shape, n in names) for n, leaf in structure.like.items()}
