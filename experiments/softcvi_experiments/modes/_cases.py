"""The cases: mixtures whose parts are known, with locations frozen in a file.

``python -m softcvi_experiments.modes._cases`` writes the file anew; the locations are
from a generator of this project with a fixed seed.
"""

import dataclasses
import functools
import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from softcvi import DensityTarget

# Distances, weights of the first, ratios of standard deviations, parameters.
GRID = [
    (distance, weight, ratio, size)
    for size in (2, 5, 10, 20, 50)
    for distance in (3.0, 10.0, 30.0, 100.0)
    for weight in (0.5, 0.8, 0.95)
    for ratio in (0.1, 1.0, 10.0)
]
# Parameters, and how many times narrower the spike is.
SPIKES = [(2, 5.0), (2, 20.0), (2, 50.0), (5, 5.0), (5, 10.0)]
LOCATIONS = Path(__file__).with_name("locations.json")
_HALF = {"forty": 40.0, "ten": 10.0, "direction": 1.0, "spike": 1.0}
_SHAPES = {
    "forty-2": (40, 2),
    "forty-50": (40, 50),
    "ten-10": (10, 10),
    "ten-50": (10, 50),
    "direction": (len(GRID), 50),
    "spike": (len(SPIKES), 5),
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A mixture of products of normals or of t, with all that is known of it.

    Attributes:
        name: Name of the group of cases.
        entry: Number within the group.
        weights: Weight of each part.
        means: Centres.
        scales: Scale of each part.
        df: Degrees of freedom of t; None for normals.

    Example:
        >>> get_case("forty-2", 0).means.shape
        (40, 2)
    """

    name: str
    entry: int
    weights: np.ndarray
    means: np.ndarray
    scales: np.ndarray
    df: float | None = None

    @property
    def target(self) -> DensityTarget:
        """The target of a fit."""
        names = ("weights", "means", "scales")
        data = {name: jnp.asarray(vars(self)[name], float) for name in names}
        like = {"x": jnp.zeros(self.means.shape[1])}
        if self.df is None:
            return DensityTarget(_normals, like, observed=data)
        return DensityTarget(_students, like, observed=data | {"df": self.df})

    def nearest(self, x: np.ndarray) -> np.ndarray:
        """The most probable part of each draw.

        Args:
            x: Draws along the first axis.
        """
        z = (x[:, None] - self.means) / self.scales[:, None]
        heights = np.log(self.weights) - x.shape[1] * np.log(self.scales)
        if self.df is None:
            inner = -0.5 * z**2
        else:
            inner = -0.5 * (self.df + 1) * np.log1p(z**2 / self.df)
        return np.argmax(heights + inner.sum(axis=-1), axis=1)


def _normals(theta, data):
    z = (theta["x"] - data["means"]) / data["scales"][:, None]
    heights = jnp.log(data["weights"]) - theta["x"].size * jnp.log(data["scales"])
    return logsumexp(heights - 0.5 * jnp.sum(z**2, axis=-1))


def _students(theta, data):
    z = (theta["x"] - data["means"]) / data["scales"][:, None]
    heights = jnp.log(data["weights"]) - theta["x"].size * jnp.log(data["scales"])
    tails = jnp.log1p(z**2 / data["df"]).sum(axis=-1)
    return logsumexp(heights - 0.5 * (data["df"] + 1) * tails)


def _even(name: str, df: float | None = None) -> Case:
    means = np.array(_locations()[name])
    count = len(means)
    return Case(name, 0, np.full(count, 1 / count), means, np.ones(count), df)


def _pair(entry: int) -> Case:
    distance, weight, ratio, size = GRID[entry]
    way = np.array(_locations()["direction"][entry])[:size]
    means = np.stack([np.zeros(size), distance * way / np.linalg.norm(way)])
    weights = np.array([weight, 1 - weight])
    return Case("two-normals", entry, weights, means, np.array([1.0, ratio]))


def _spike(entry: int) -> Case:
    size, ratio = SPIKES[entry]
    place = np.array(_locations()["spike"][entry])[:size]
    means = np.stack([np.zeros(size), place])
    scales = np.array([1.0, 1 / ratio])
    return Case("spikes", entry, np.array([0.2, 0.8]), means, scales)


# Number of entries of each group, and how to make one.
CASES = {
    "forty-2": (1, lambda entry: _even("forty-2")),
    "forty-50": (1, lambda entry: _even("forty-50")),
    "ten-10": (1, lambda entry: _even("ten-10", 2.0)),
    "ten-50": (1, lambda entry: _even("ten-50", 2.0)),
    "spikes": (len(SPIKES), _spike),
    "two-normals": (len(GRID), _pair),
}


def get_case(name: str, entry: int) -> Case:
    """One case.

    Args:
        name: A key of ``CASES``.
        entry: Number within the group.

    Example:
        >>> get_case("two-normals", 0).weights.tolist()
        [0.5, 0.5]
    """
    if name not in CASES:
        raise ValueError(f"name: one of {', '.join(CASES)}; got {name!r}.")
    return CASES[name][1](entry)


@functools.cache
def _locations() -> dict[str, list]:
    return json.loads(LOCATIONS.read_text())


def _write_locations() -> None:
    rng = np.random.default_rng(20261116)
    found = {}
    for name, shape in _SHAPES.items():
        kind = name.split("-")[0]
        if kind in ("forty", "ten"):
            values = rng.uniform(-_HALF[kind], _HALF[kind], shape)
        else:
            values = rng.normal(0, _HALF[kind], shape)
        found[name] = np.round(values, 4).tolist()
    LOCATIONS.write_text(json.dumps(found))


if __name__ == "__main__":
    _write_locations()
