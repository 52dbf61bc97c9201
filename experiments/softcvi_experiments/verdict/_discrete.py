"""Discrete latents, by enumeration: densities without a gradient."""

import numpy as np
from scipy import special

from softcvi.adapters import from_callable
from softcvi_experiments.verdict._posterior import Moments, RandomPosterior

_PRIOR_SD = 5.0


def _answer(log_prob, like, sizes, rows) -> RandomPosterior:
    """Average over enumerated states: (log weight, means, variances) of each."""
    weights = special.softmax([row[0] for row in rows])
    mean = {
        name: np.tensordot(weights, [row[1][name] for row in rows], 1) for name in like
    }
    spread = {}
    for name in like:
        inside = np.array([row[2][name] for row in rows])
        between = np.array([row[1][name] for row in rows]) - mean[name]
        spread[name] = np.sqrt(np.tensordot(weights, inside + between**2, 1))
    target = from_callable(log_prob, like, vectorized=True, num_values=sizes)
    return RandomPosterior(target, mean, spread, Moments(), "enumeration")


def change_point(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A mean that changes at an unknown time, which is a parameter."""
    length = (12, 30)[seed % 2]
    when = rng.integers(length // 4, 3 * length // 4)
    y = rng.normal(size=length) + np.where(
        np.arange(length) < when, 0, rng.uniform(0.8, 3)
    )
    time = np.arange(length)

    def log_prob(x):
        before = time < x["when"][:, None]
        level = np.where(before, x["level"][:, :1], x["level"][:, 1:])
        prior = (x["level"] / _PRIOR_SD) ** 2
        return -0.5 * (((y - level) ** 2).sum(axis=1) + prior.sum(axis=1))

    rows = []
    for t in range(length):
        parts = [_group_mean(part) for part in (y[:t], y[t:])]
        mean = {"when": np.array(float(t)), "level": np.array([p[1] for p in parts])}
        inside = {"when": np.zeros(()), "level": np.array([p[2] for p in parts])}
        rows.append((sum(p[0] for p in parts), mean, inside))
    like = {"level": np.zeros(2), "when": np.zeros((), int)}
    return _answer(log_prob, like, {"when": length}, rows)


def _group_mean(y: np.ndarray) -> tuple[float, float, float]:
    """Log evidence of a group, and mean and variance of its level."""
    precision = y.size + 1 / _PRIOR_SD**2
    mean = y.sum() / precision
    log_evidence = 0.5 * (y.sum() * mean - np.log(precision) - np.log(_PRIOR_SD**2))
    return float(log_evidence), float(mean), 1 / float(precision)


def inclusion(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Regression with an indicator for each coefficient."""
    size = (2, 4)[seed % 2]
    x = rng.normal(size=(20, size))
    y = x @ (rng.normal(0, 1, size) * (rng.uniform(size=size) < 0.5))
    y = y + rng.normal(size=20)

    def log_prob(theta):
        active = theta["beta"] * theta["used"]
        residual = y - active @ x.T
        return -0.5 * ((residual**2).sum(axis=1) + (theta["beta"] ** 2).sum(axis=1))

    rows = []
    for code in range(2**size):
        used = np.array([(code >> j) & 1 for j in range(size)], float)
        design = x * used
        precision = np.eye(size) + design.T @ design
        mean = np.linalg.solve(precision, design.T @ y)
        height = 0.5 * (y @ design @ mean - np.linalg.slogdet(precision)[1])
        variance = np.diag(np.linalg.inv(precision))
        rows.append(
            (
                height,
                {"used": used, "beta": mean},
                {"used": np.zeros(size), "beta": variance},
            )
        )
    like = {"beta": np.zeros(size), "used": np.zeros(size, int)}
    return _answer(log_prob, like, {"used": 2}, rows)


def outliers(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A level seen with noise, and an indicator for each gross error."""
    count = (3, 5)[seed % 2]
    wide, share = 6.0, 0.2
    is_gross = rng.uniform(size=count) < 0.35
    y = rng.normal(0, 3) + np.where(is_gross, wide, 1.0) * rng.normal(size=count)

    def log_prob(theta):
        sd = np.where(theta["gross"] == 1, wide, 1.0)
        residual = (y - theta["level"][:, None]) / sd
        prior = np.where(theta["gross"] == 1, np.log(share), np.log1p(-share))
        rows = prior - np.log(sd) - 0.5 * residual**2
        return rows.sum(axis=1) - 0.5 * (theta["level"] / _PRIOR_SD) ** 2

    rows = []
    for code in range(2**count):
        gross = np.array([(code >> j) & 1 for j in range(count)], float)
        sd = np.where(gross == 1, wide, 1.0)
        precision = np.sum(sd**-2) + _PRIOR_SD**-2
        mean = np.sum(y / sd**2) / precision
        height = 0.5 * (precision * mean**2 - np.sum((y / sd) ** 2) - np.log(precision))
        height += np.sum(np.where(gross == 1, np.log(share), np.log1p(-share)))
        height -= np.sum(np.log(sd))
        inside = {"gross": np.zeros(count), "level": np.array(1 / precision)}
        rows.append((height, {"gross": gross, "level": np.array(mean)}, inside))
    like = {"gross": np.zeros(count, int), "level": np.zeros(())}
    return _answer(log_prob, like, {"gross": 2}, rows)
