"""Three simulators in plain NumPy, as black boxes: values and no gradients.

Their parameters are standard normal a priori; each simulator scales them to rates. The
observations are simulated from a seed of their own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import scipy.special

Points = np.ndarray
_STEPS_PER_UNIT = 20


@dataclass(frozen=True)
class Simulator:
    """A likelihood of standard normal parameters.

    Attributes:
        names: The parameters.
        log_likelihood: From an array of points, one row each, to one number per row.

    Example:
        >>> like = Simulator(("a",), lambda points: -points[:, 0] ** 2)
        >>> like.log_density(np.zeros((2, 1))).round(2).tolist()
        [-0.92, -0.92]
    """

    names: tuple[str, ...]
    log_likelihood: Callable[[Points], np.ndarray]

    @property
    def size(self) -> int:
        """Number of parameters."""
        return len(self.names)

    def log_prior(self, points: Points) -> np.ndarray:
        """Standard normal."""
        return -0.5 * np.sum(points**2 + np.log(2 * np.pi), axis=1)

    def log_density(self, points: Points) -> np.ndarray:
        """Prior and likelihood."""
        return self.log_prior(points) + self.log_likelihood(points)


def _solved(change: Callable, state: np.ndarray, times: int) -> np.ndarray:
    """States at times 1, 2 and so on, by Runge-Kutta steps for all points at once."""
    h, out = 1 / _STEPS_PER_UNIT, []
    for _ in range(times):
        for _ in range(_STEPS_PER_UNIT):
            a = change(state)
            b = change(state + h / 2 * a)
            c = change(state + h / 2 * b)
            state = state + h / 6 * (a + 2 * b + 2 * c + change(state + h * c))
        out.append(state)
    return np.stack(out)


def _poisson(counts: np.ndarray, rate: np.ndarray) -> np.ndarray:
    rate = np.maximum(rate, 1e-9)
    terms = counts[:, None] * np.log(rate) - rate
    return np.sum(terms - scipy.special.gammaln(counts + 1)[:, None], axis=0)


def _normal(values: np.ndarray, mean: np.ndarray, sd: np.ndarray | float) -> np.ndarray:
    terms = -0.5 * ((values - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
    return np.sum(terms, axis=tuple(range(np.ndim(terms) - 1)))


def _epidemic() -> Simulator:
    """Infections by day: rates of contact and recovery, and how many were ill first."""

    def infected(points: Points) -> np.ndarray:
        contact, recovery = np.exp(0.3 + 0.5 * points[:, 0]), np.exp(points[:, 1] - 1)
        first = np.exp(1 + points[:, 2])

        def change(state):
            new = contact * state[0] * state[1] / 800
            return np.stack([-new, new - recovery * state[1]])

        return _solved(change, np.stack([800 - first, first]), 14)[:, 1]

    truth = infected(np.array([[0.5, 0.2, -0.5]]))[:, 0]
    counts = np.random.default_rng(1).poisson(truth)
    names = ("contact", "recovery", "first")
    return Simulator(names, lambda points: _poisson(counts, infected(points)))


def _predators() -> Simulator:
    """Hares and lynxes: four rates of Lotka and Volterra, with noise on the logs."""

    def sizes(points: Points) -> np.ndarray:
        births, caught, deaths, fed = np.exp(
            np.array([-0.6, -3.6, -0.2, -3.7])[:, None] + 0.3 * points.T
        )

        def change(log_state):
            # On the scale of logs both stay positive; rates far out grow no further.
            hares, lynxes = np.exp(np.minimum(log_state, 12.0))
            return np.stack([births - caught * lynxes, -deaths + fed * hares])

        start = np.log(np.full((2, len(points)), [[30.0], [5.0]]))
        return _solved(change, start, 15)

    noise = np.random.default_rng(2).normal(0, 0.25, (15, 2))
    observed = sizes(np.array([[0.2, -0.3, 0.1, 0.3]]))[:, :, 0] + noise
    names = ("births", "caught", "deaths", "fed")
    return Simulator(
        names, lambda points: _normal(observed[:, :, None], sizes(points), 0.25)
    )


def _drug() -> Simulator:
    """A dose through the gut: absorption, elimination, volume and the noise."""
    hours = np.array([0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 18.0, 24.0])

    def log_concentration(points: Points) -> np.ndarray:
        absorbed = np.exp(0.2 + 0.6 * points[:, 0])
        gone = absorbed * scipy.special.expit(-1.5 + points[:, 1])
        volume = np.exp(3 + 0.5 * points[:, 2])
        decay = np.exp(-gone * hours[:, None]) - np.exp(-absorbed * hours[:, None])
        return np.log(100 * absorbed / volume / (absorbed - gone) * decay + 1e-12)

    def log_likelihood(points: Points) -> np.ndarray:
        noise = np.exp(-1.5 + 0.5 * points[:, 3])
        return _normal(observed[:, None], log_concentration(points), noise)

    truth = log_concentration(np.array([[0.3, -0.5, 0.4, 0.0]]))[:, 0]
    observed = truth + np.random.default_rng(3).normal(0, 0.2, hours.size)
    return Simulator(("absorbed", "gone", "volume", "noise"), log_likelihood)


SIMULATORS: Mapping[str, Simulator] = {
    "epidemic": _epidemic(),
    "predators": _predators(),
    "drug": _drug(),
}
