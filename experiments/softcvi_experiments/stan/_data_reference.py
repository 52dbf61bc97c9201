"""Simulated data of the kinds for which posteriordb has reference draws."""

from collections.abc import Callable
from typing import Any

import numpy as np

Data = dict[str, Any]


def _regression(X: np.ndarray, y: np.ndarray) -> Data:
    X = np.column_stack([np.ones(len(X)), X])
    return {"N": X.shape[0], "D": X.shape[1], "X": X, "y": y}


def _earnings(rng: np.random.Generator) -> Data:
    """Incomes by height in inches and sex: an intercept thousands of units away."""
    n = 1192
    male = rng.binomial(1, 0.42, n)
    height = rng.normal(64.5 + 5.6 * male, 2.7)
    mean = -41_000 + 950 * height + 9_000 * male
    return _regression(np.column_stack([height, male]), rng.normal(mean, 18_000))


def _bushes(rng: np.random.Generator) -> Data:
    """Weights of bushes by sizes that hang together, and a group."""
    n = 46
    first = rng.gamma(6, 0.35, n)
    second = first * rng.uniform(0.4, 1.0, n)
    height = 0.3 + 0.5 * first + rng.normal(0, 0.25, n)
    total = height + np.abs(rng.normal(0.15, 0.15, n))
    density = 1 + rng.poisson(0.7, n)
    group = rng.binomial(1, 0.45, n)
    X = np.column_stack([first, second, height, total, density, group])
    mean = -700 + X @ [190, 370, 350, -100, 130, 360]
    return _regression(X, rng.normal(mean, 270))


def _prices(rng: np.random.Generator) -> Data:
    """Log prices by polynomials of weight and of grades, nearly collinear."""
    n = 3000
    carat = rng.gamma(2.8, 0.28, n) + 0.2
    log_carat = np.log(carat)
    clarity = rng.integers(1, 9, n) / 8
    colour = rng.integers(1, 8, n) / 7
    columns = [carat, log_carat, carat * log_carat]
    columns += [clarity**p for p in range(1, 6)] + [colour**p for p in range(1, 6)]
    columns += [carat * clarity, carat * colour, log_carat * clarity]
    X = np.column_stack(columns)
    y = 8.4 + 1.9 * log_carat + 0.8 * clarity - 0.5 * colour + 0.1 * carat
    return _regression(X, y + rng.normal(0, 0.13, n))


def _votes(rng: np.random.Generator) -> Data:
    """A score from 1 to 7 by questionnaire answers and age groups."""
    n = 900
    age = rng.integers(0, 4, n)
    dummies = (age[:, None] == np.arange(1, 4)).astype(float)
    answers = rng.integers(1, 8, (n, 4))
    gender, race = rng.binomial(1, 0.5, n), rng.binomial(1, 0.2, n)
    X = np.column_stack([answers, dummies, gender, race])
    mean = 1.5 + X @ [0.4, 0.1, -0.02, 0.1, -0.2, -0.05, -0.2, 0.0, -1.0]
    return _regression(X, rng.normal(mean, 1.9))


def _events(rng: np.random.Generator) -> Data:
    state, u, v = 0, [], []
    for _ in range(120):
        u.append(rng.exponential(1 / (0.8, 3.2)[state]))
        v.append(rng.exponential(1 / (0.5, 3.5)[state]))
        state = 1 - state if rng.uniform() < (0.15, 0.3)[state] else state
    return {"N": 120, "K": 2, "u": u, "v": v, "alpha": [[4, 1], [1, 4]]}


def _gp_acceleration(rng: np.random.Generator) -> Data:
    points = np.sort(rng.choice(np.linspace(0, 1, 60), 25, replace=False))
    index = np.sort(rng.integers(0, points.size, 70))
    x = points[index]
    mean = -60 * np.exp(-0.5 * ((x - 0.35) / 0.1) ** 2) * np.sin((x - 0.2) * 10)
    y = mean + rng.normal(0, np.where(x < 0.2, 2.0, 20.0))
    sizes = {"N": 70, "Kgp_1": 1, "Dgp_1": 1, "Nsubgp_1": points.size}
    where = {"Jgp_1": index + 1, "Xgp_1": points[:, None]}
    return {**sizes, "Y": y, **where, "prior_only": 0}


REFERENCE_SIMULATORS: dict[str, Callable[[np.random.Generator], Data]] = {
    "gp_acceleration": _gp_acceleration,
    "hmm_events": _events,
    "raw_regression_bushes": _bushes,
    "raw_regression_earnings": _earnings,
    "raw_regression_prices": _prices,
    "raw_regression_votes": _votes,
}
# Several data sets for one program: file of each.
FILES = {name: "raw_regression" for name in REFERENCE_SIMULATORS if "raw_" in name}
