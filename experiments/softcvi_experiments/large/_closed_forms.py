"""Large posteriors whose answer is known: normals, random walks, wells, the funnel."""

import jax.numpy as jnp
import numpy as np

import softcvi
from softcvi.objectives import AdaptiveBlocks, RandomBlocks
from softcvi_experiments.large._density import density
from softcvi_experiments.large._posterior import Bounds, LargePosterior

_HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)


def _normal(theta, data):
    return -0.5 * jnp.sum((data["factor"] @ (theta["x"] - data["mean"])) ** 2)


def normal(size: int, condition: float) -> LargePosterior:
    """A rotated normal: eigenvalues of its covariance from 1 to the condition number.

    Args:
        size: Number of parameters.
        condition: Condition number of the covariance.
    """
    rng = np.random.default_rng(size)
    rotation = np.linalg.qr(rng.normal(size=(size, size)))[0]
    sd = np.logspace(0, 0.5 * np.log10(condition), size)
    mean = rng.normal(0, 5, size)
    data = {"mean": mean, "factor": rotation.T / sd[:, None]}
    return LargePosterior(
        density(_normal, {"x": (size,)}, data),
        Bounds(),
        {"x": mean},
        {"x": np.sqrt((rotation**2) @ sd**2)},
        float(np.sum(np.log(sd)) + size * _HALF_LOG_TWO_PI),
    )


def _walk(theta, data):
    level = theta["level"]
    steps = jnp.diff(level) / data["step"]
    seen = (data["y"] - level) / data["noise"]
    return -0.5 * (
        (level[0] / data["first"]) ** 2 + jnp.sum(steps**2) + jnp.sum(seen**2)
    )


def walk(length: int) -> LargePosterior:
    """A random walk seen with noise of known size.

    Args:
        length: Number of points.
    """
    rng = np.random.default_rng(length)
    first, step, noise = 10.0, 0.3, 1.0
    level = rng.normal() + np.cumsum(step * rng.normal(size=length))
    y = level + noise * rng.normal(size=length)
    steps = np.diff(np.eye(length), axis=0) / step
    precision = steps.T @ steps + np.eye(length) / noise**2
    precision[0, 0] += first**-2
    covariance = np.linalg.inv(precision)
    mean = covariance @ (y / noise**2)
    peak = 0.5 * (y / noise**2) @ mean - 0.5 * np.sum((y / noise) ** 2)
    log_det = np.linalg.slogdet(precision)[1]
    data = {"y": y, "first": first, "step": step, "noise": noise}
    return LargePosterior(
        density(_walk, {"level": (length,)}, data),
        Bounds(),
        {"level": mean},
        {"level": np.sqrt(np.diag(covariance))},
        float(peak - 0.5 * log_det + length * _HALF_LOG_TWO_PI),
    )


def _wells(theta, data):
    x, y = theta["x"], theta["y"]
    return jnp.sum(0.5 * x + 6.0 * x**2 - x**4 - 0.5 * y**2) + data["none"]


def many_well(pairs: int) -> LargePosterior:
    """Pairs of a double well and a normal; two modes for each pair.

    Args:
        pairs: Number of pairs.
    """
    grid = np.linspace(-4, 4, 200_001)
    height = np.exp(0.5 * grid + 6 * grid**2 - grid**4)
    share = height / height.sum()
    mean = share @ grid
    sd = np.sqrt(share @ (grid - mean) ** 2)
    of_pair = np.log(height.sum() * (grid[1] - grid[0])) + _HALF_LOG_TWO_PI
    blocks = {
        "whole particles": softcvi.SoftCVI(),
        "blocks of 4": softcvi.SoftCVI(blocks=RandomBlocks(4)),
        "blocks of 8": softcvi.SoftCVI(blocks=RandomBlocks(8)),
        "adaptive blocks": softcvi.SoftCVI(blocks=AdaptiveBlocks()),
        "ELBO": softcvi.ELBO(),
    }

    def mixtures(objective):
        return lambda target: (
            softcvi.guides.scalar_mixtures(target, scale=2.0),
            objective,
        )

    return LargePosterior(
        density(_wells, {"x": (pairs,), "y": (pairs,)}, {"none": 0.0}),
        Bounds(log_evidence=0.02 if pairs <= 16 else 0.1),
        {"x": np.full(pairs, mean), "y": np.zeros(pairs)},
        {"x": np.full(pairs, sd), "y": np.ones(pairs)},
        float(pairs * of_pair),
        guides={name: mixtures(objective) for name, objective in blocks.items()},
    )


def _funnel(theta, data):
    v, x = theta["v"], theta["x"]
    scaled = jnp.sum((x * jnp.exp(-0.5 * v)) ** 2) + x.size * v
    return -0.5 * (scaled + (v / data["sd"]) ** 2)


def funnel(size: int) -> LargePosterior:
    """Neal's funnel, the log variance with a standard deviation of 3.

    The other parameters have so heavy tails that their standard deviations cannot be
    estimated from draws: the log variance alone is compared.

    Args:
        size: Number of parameters.
    """
    return LargePosterior(
        density(_funnel, {"v": (), "x": (size - 1,)}, {"sd": 3.0}),
        Bounds(),
        {"v": np.zeros(())},
        {"v": np.full((), 3.0)},
        float(np.log(3.0) + size * _HALF_LOG_TWO_PI),
        sites=("v",),
    )
