"""A random posterior with its answer, and the rule that decides what is wrong."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from softcvi import DensityTarget
from softcvi.targets import AbstractSpace, AbstractTarget

Values = Mapping[str, np.ndarray]

# From the issue: any mean off by more than 0.3 sd, or any sd by more than a third.
WRONG_CENTRE = 0.3
WRONG_SPREAD = 1 / 3


class Moments:
    """Centre and spread are mean and standard deviation.

    Example:
        >>> float(Moments().centre(np.array([1.0, 3.0])))
        2.0
    """

    def centre(self, draws: np.ndarray) -> np.ndarray:
        """The mean over the leading axis."""
        return np.mean(draws, axis=0)

    def spread(self, draws: np.ndarray) -> np.ndarray:
        """The standard deviation over the leading axis."""
        return np.std(draws, axis=0)


class Quantiles:
    """Centre and spread where a few thousand draws cannot estimate a variance.

    The median, and half the distance between the 16 % and the 84 % quantile, which is
    the standard deviation of a normal.

    Example:
        >>> float(Quantiles().centre(np.array([1.0, 2.0, 1e9])))
        2.0
    """

    def centre(self, draws: np.ndarray) -> np.ndarray:
        """The median over the leading axis."""
        return np.median(draws, axis=0)

    def spread(self, draws: np.ndarray) -> np.ndarray:
        """Half the width of the central 68 %."""
        low, high = np.quantile(draws, [0.15866, 0.84134], axis=0)
        return (high - low) / 2


@dataclasses.dataclass(frozen=True)
class RandomPosterior:
    """A target and the right answer.

    Attributes:
        target: What a method gets.
        centre: Right centre of each site, in model coordinates.
        spread: Right spread of each site.
        measure: What centre and spread mean.
        source: Where the answer is from, such as ``"closed form"``.

    Example:
        >>> target = density(lambda t, d: -0.5 * (t["x"] ** 2).sum(), {"x": (2,)}, {})
        >>> right = {"x": np.zeros(2)}, {"x": np.ones(2)}
        >>> case = RandomPosterior(target, *right, Moments(), "closed form")
        >>> case.score({"x": np.random.default_rng(0).normal(size=(4000, 2))}).right
        True
    """

    target: AbstractTarget
    centre: Values
    spread: Values
    measure: Moments | Quantiles
    source: str

    @property
    def num_parameters(self) -> int:
        """Parameters in the fitting space."""
        return self.target.structure.size

    def score(self, draws: Mapping[str, Any]) -> "Score":
        """Compare draws with the right answer.

        Args:
            draws: Arrays by name in model coordinates, draws along the first axis.
        """
        worst_centre, worst_spread, at = 0.0, 1.0, ""
        for name, centre in self.centre.items():
            values = np.asarray(draws[name], np.float64)
            sd = np.asarray(self.spread[name])
            if not np.isfinite(values).all():
                return Score(np.inf, np.inf, name)
            shift = np.abs(self.measure.centre(values) - centre) / sd
            ratio = self.measure.spread(values) / sd
            shift, ratio = np.ravel(shift), np.ravel(ratio)
            worst_centre = max(worst_centre, float(shift.max()))
            furthest = ratio[np.argmax(np.abs(ratio - 1))]
            if abs(furthest - 1) > abs(worst_spread - 1):
                worst_spread = float(furthest)
            if not at and (shift > WRONG_CENTRE).any():
                at = name
            if not at and abs(furthest - 1) > WRONG_SPREAD:
                at = name
        return Score(worst_centre, worst_spread, at)


@dataclasses.dataclass(frozen=True)
class Score:
    """How far an answer is off.

    Attributes:
        centre_error: Largest error of a centre, in right standard deviations.
        spread_ratio: The spread, over the right one, that is furthest from 1.
        site: First site that is wrong; empty where all are right.

    Example:
        >>> Score(0.1, 0.5, "x").right, Score(0.1, 1.2, "").right
        (False, True)
    """

    centre_error: float
    spread_ratio: float
    site: str

    @property
    def right(self) -> bool:
        """Whether no centre and no spread is wrong."""
        far = abs(self.spread_ratio - 1) > WRONG_SPREAD
        return not (self.centre_error > WRONG_CENTRE or far)


def density(
    log_prob: Callable,
    shapes: Mapping[str, tuple[int, ...]],
    data: Mapping[str, Any],
    space: AbstractSpace | None = None,
) -> DensityTarget:
    """A target of named sites whose data are arguments, not constants.

    Posteriors of one family and size share their compiled programs this way.

    Args:
        log_prob: Module-level function of the sites and of the data.
        shapes: Shape of each site.
        data: Arrays by name.
        space: Where the fit happens.

    Example:
        >>> target = density(lambda t, d: -0.5 * (t["x"] ** 2).sum(), {"x": (2,)}, {})
        >>> target.structure.size
        2
    """
    like = {name: jnp.zeros(shape) for name, shape in shapes.items()}
    observed = jax.tree_util.tree_map(lambda value: jnp.asarray(value, float), data)
    return DensityTarget(log_prob, like, space=space, observed=dict(observed))


def from_moments(
    target: AbstractTarget, mean: Values, variance: Values, source: str
) -> RandomPosterior:
    """A posterior whose means and variances are known.

    Example:
        >>> target = density(lambda t, d: -0.5 * (t["x"] ** 2).sum(), {"x": (1,)}, {})
        >>> right = {"x": np.zeros(1)}, {"x": np.full(1, 4.0)}
        >>> from_moments(target, *right, "closed form").spread["x"]
        array([2.])
    """
    spread = {name: np.sqrt(value) for name, value in variance.items()}
    return RandomPosterior(target, dict(mean), spread, Moments(), source)


def from_draws(
    target: AbstractTarget, draws: Values, measure: Moments | Quantiles
) -> RandomPosterior:
    """A posterior whose answer is read off many independent draws.

    Example:
        >>> target = density(lambda t, d: -0.5 * (t["x"] ** 2).sum(), {"x": ()}, {})
        >>> draws = {"x": np.random.default_rng(0).normal(size=100_000)}
        >>> from_draws(target, draws, Quantiles()).source
        '100,000 exact draws'
    """
    count = len(next(iter(draws.values())))
    return RandomPosterior(
        target,
        {name: measure.centre(value) for name, value in draws.items()},
        {name: measure.spread(value) for name, value in draws.items()},
        measure,
        f"{count:,} exact draws",
    )
