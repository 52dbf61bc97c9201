"""Simulated data of more kinds found in posteriordb, at the published sizes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

Data = dict[str, Any]


def _losses(rng: np.random.Generator) -> Data:
    """A triangle: the younger a cohort, the fewer of its losses are known."""
    size = 10
    premium = rng.uniform(30_000, 90_000, size)
    ratio, shape, scale = rng.lognormal(-0.35, 0.15, size), 1.4, 2.6
    cohort, time = np.nonzero(np.add.outer(np.arange(size), np.arange(size)) < size)
    grown = 1 / (1 + (scale / (time + 1.0)) ** shape)
    noise = rng.normal(0, 0.015, cohort.size)
    return {
        "growthmodel_id": 0,
        "n_data": cohort.size,
        "n_time": size,
        "n_cohort": size,
        "cohort_id": cohort + 1,
        "t_idx": time + 1,
        "t_value": np.arange(1.0, size + 1),
        "premium": premium,
        "loss": premium[cohort] * (ratio[cohort] * grown + noise),
    }


def _yearly_counts(rng: np.random.Generator) -> Data:
    year = (np.arange(1, 41) - 20.5) / 20
    log_rate = 4.3 + 1.2 * year + 0.1 * year**2 - 0.9 * year**3
    counts = rng.poisson(np.exp(log_rate + rng.normal(0, 0.12, year.size)))
    return {"n": year.size, "C": counts, "year": year}


def _species(rng: np.random.Generator) -> Data:
    sites, visits, species = 20, 18, 45
    covariance = [[2.0, 0.8], [0.8, 1.0]]
    effects = rng.multivariate_normal([-0.8, -2.2], covariance, species)
    occupied, detected = (1 / (1 + np.exp(-e[:, None])) for e in effects.T)
    is_there = rng.uniform(size=(species, sites)) < occupied
    X = is_there * rng.binomial(visits, np.broadcast_to(detected, is_there.shape))
    X = X[X.any(1)]
    sizes = {"J": sites, "K": visits, "n": len(X), "S": len(X) + 15}
    return {**sizes, "X": X}


def _carbon(rng: np.random.Generator) -> Data:
    k1, k2, back, forth, share, total = 0.02, 0.06, 0.2, 0.3, 0.9, 7.7
    change = np.array([[-k1, forth * k2], [back * k1, -k2]])
    first = total * np.array([share, 1 - share])
    times = np.linspace(1, 95, 25)
    left = [np.sum(scipy.linalg.expm(change * t) @ first) for t in times]
    evolved = np.abs(total - np.array(left) + rng.normal(0, 0.08, times.size))
    sizes = {"totalC_t0": total, "t0": 0.0, "N_t": times.size}
    return {**sizes, "ts": times, "eCO2mean": evolved}


def _grid(rng: np.random.Generator) -> Data:
    x1, x2 = np.linspace(-1.5, 1.5, 25), np.linspace(-1.5, 1.5, 20)
    first, second = (
        size * np.exp(-width * (x[:, None] - x) ** 2) + 1e-5 * np.eye(x.size)
        for x, size, width in ((x1, 2.0, 2.0), (x2, 1.0, 1.0))
    )
    factor = np.linalg.cholesky(np.kron(first, second))
    n = x1.size * x2.size
    y = factor @ rng.normal(size=n) + rng.normal(0, 0.5, n)
    sizes = {"n1": x1.size, "n2": x2.size}
    return {**sizes, "x1": x1[:, None], "x2": x2[:, None], "y": y}


FURTHER_SIMULATORS: dict[str, Callable[[np.random.Generator], Data]] = {
    "carbon_pools": _carbon,
    "gp_on_grid": _grid,
    "loss_curves": _losses,
    "species": _species,
    "yearly_counts": _yearly_counts,
}
