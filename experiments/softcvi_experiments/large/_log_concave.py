"""Large log-concave posteriors: logistic regressions and a Cox process."""

import jax
import jax.numpy as jnp
import numpy as np

from softcvi_experiments.large._density import density
from softcvi_experiments.large._posterior import Bounds, LargePosterior


def _logistic(theta, data):
    logits = data["x"] @ theta["beta"]
    seen = jnp.sum(data["y"] * logits - jax.nn.softplus(logits))
    return seen - 0.5 * jnp.sum(theta["beta"] ** 2)


def logistic(size: int, rows: int) -> LargePosterior:
    """Logistic regression with correlated columns and a standard normal prior.

    Neighbouring columns have a correlation of 0.7.

    Args:
        size: Number of coefficients.
        rows: Number of observations.
    """
    rng = np.random.default_rng(size)
    x = rng.normal(size=(rows, size))
    for i in range(1, size):
        x[:, i] = 0.7 * x[:, i - 1] + np.sqrt(1 - 0.7**2) * x[:, i]
    beta = rng.normal(size=size) * 2.0 / np.sqrt(size)
    y = rng.uniform(size=rows) < 1 / (1 + np.exp(-x @ beta))
    data = {"x": x, "y": y}
    return LargePosterior(density(_logistic, {"beta": (size,)}, data), Bounds())


def _cox(theta, data):
    x = theta["x"]
    centred = data["whiten"] @ (x - data["mean"])
    seen = jnp.sum(data["counts"] * x - data["area"] * jnp.exp(x))
    return seen - 0.5 * jnp.sum(centred**2) + data["constant"]


def cox_process(side: int) -> LargePosterior:
    """A log-Gaussian Cox process on a square grid, with counts simulated from it.

    Covariance 1.91 exp(-33 d / side) over the distance d on the grid, mean
    log 126 - 0.955, area 1 / side^2 for each cell.

    Args:
        side: Cells along each axis.
    """
    rng = np.random.default_rng(side)
    place = np.stack(np.meshgrid(*2 * [np.arange(side)]), axis=-1).reshape(-1, 2)
    distance = np.linalg.norm(place[:, None] - place[None], axis=-1)
    covariance = 1.91 * np.exp(-33.0 * distance / side)
    factor = np.linalg.cholesky(covariance)
    mean, area = np.log(126.0) - 0.955, side**-2.0
    field = mean + factor @ rng.normal(size=side**2)
    counts = rng.poisson(area * np.exp(field))
    log_factorials = np.sum([np.sum(np.log(np.arange(1, c + 1))) for c in counts])
    constant = (
        -np.sum(np.log(np.diag(factor)))
        - 0.5 * side**2 * np.log(2 * np.pi)
        + counts.sum() * np.log(area)
        - log_factorials
    )
    data = {
        "whiten": np.linalg.inv(factor),
        "mean": mean,
        "counts": counts,
        "area": area,
        "constant": constant,
    }
    target = density(_cox, {"x": (side**2,)}, data)
    return LargePosterior(target, Bounds(log_evidence=0.1))
