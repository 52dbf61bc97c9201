"""Simulated data for the Stan programs, from fixed seeds."""

from collections.abc import Callable
from typing import Any

import numpy as np

Data = dict[str, Any]


def _schools(rng: np.random.Generator) -> Data:
    return {
        "J": 8,
        "y": [28, 8, -3, 7, -1, 1, 18, 12],
        "sigma": [15, 10, 16, 11, 9, 11, 10, 18],
    }


def _garch(rng: np.random.Generator) -> Data:
    y, variance = [5.0], 2.0
    for noise in rng.normal(size=199):
        variance = 1.5 + 0.5 * (y[-1] - 5.0) ** 2 + 0.25 * variance
        y.append(5.0 + np.sqrt(variance) * noise)
    return {"T": 200, "y": y, "sigma1": 0.5}


def _temperatures(rng: np.random.Generator) -> Data:
    year = np.arange(1952, 2014, dtype=float)
    temperature = 9.3 + 0.02 * (year - 1983) + rng.normal(0, 1.1, year.size)
    return {"N": year.size, "year": year, "temperature": temperature}


def _scores(rng: np.random.Generator) -> Data:
    n = 430
    school = rng.binomial(1, 0.78, n)
    iq = rng.normal(98 + 4 * school, 14.5)
    score = -10 + 50 * school + 1.0 * iq - 0.48 * school * iq + rng.normal(0, 18, n)
    return {"N": n, "score": score, "finished_school": school, "iq": iq}


def _wells(rng: np.random.Generator) -> Data:
    n = 800
    distance, arsenic = rng.exponential(48, n), 0.5 + rng.exponential(1.1, n)
    logit = -0.15 - 0.006 * distance + 0.55 * arsenic - 0.0018 * distance * arsenic
    switched = rng.binomial(1, 1 / (1 + np.exp(-logit)))
    return {"N": n, "switched": switched, "distance": distance, "arsenic": arsenic}


def _counts(rng: np.random.Generator) -> Data:
    n = 250
    before, treatment = rng.gamma(0.5, 1.0, n), rng.binomial(1, 0.6, n)
    exposure = rng.uniform(0.2, 4, n)
    mean = np.exp(2.8 + 0.7 * before - 0.8 * treatment) * exposure
    y = rng.poisson(mean * rng.gamma(0.4, 1 / 0.4, n))
    return {
        "N": n,
        "y": y,
        "before": before,
        "treatment": treatment,
        "log_exposure": np.log(exposure),
    }


def _radon(rng: np.random.Generator) -> Data:
    counties = 30
    uranium = rng.normal(0, 0.4, counties)
    alpha = 1.5 + 0.7 * uranium + rng.normal(0, 0.25, counties)
    county = np.repeat(np.arange(counties), rng.integers(1, 16, counties))
    floor = rng.binomial(1, 0.2, county.size)
    radon = alpha[county] - 0.65 * floor + rng.normal(0, 0.75, county.size)
    return {
        "N": county.size,
        "J": counties,
        "county": county + 1,
        "floor_measure": floor,
        "log_uranium": uranium,
        "log_radon": radon,
    }


def _hmm(rng: np.random.Generator) -> Data:
    state, y = 0, []
    for _ in range(150):
        y.append(rng.normal((3.0, 9.0)[state], (1.0, 2.0)[state]))
        state = 1 - state if rng.uniform() < (0.25, 0.4)[state] else state
    return {"T": 150, "K": 2, "y": y}


def _gp(rng: np.random.Generator) -> Data:
    x = np.linspace(-10, 10, 40)
    y = 2 * np.sin(x / 2) + 0.3 * x + rng.normal(0, 0.6, x.size)
    return {"N": x.size, "x": x, "y": y}


def _lotka_volterra(rng: np.random.Generator) -> Data:
    def change(z):
        return np.array([(0.55 - 0.028 * z[1]) * z[0], (-0.8 + 0.024 * z[0]) * z[1]])

    z, path, step = np.array([33.0, 6.0]), [], 0.001
    for i in range(20_001):
        if i % 1000 == 0:
            path.append(z)
        middle = z + 0.5 * step * change(z)
        z = z + step * change(middle)
    noisy = np.array(path) * np.exp(rng.normal(0, 0.25, (21, 2)))
    return {"N": 20, "ts": np.arange(1.0, 21), "y_init": noisy[0], "y": noisy[1:]}


def _mixture(rng: np.random.Generator) -> Data:
    second = rng.uniform(size=300) < 0.37
    y = np.where(second, rng.normal(2.7, 1.0, 300), rng.normal(-2.8, 1.2, 300))
    return {"N": 300, "y": y}


def _survival(rng: np.random.Generator) -> Data:
    n = 180
    X = np.stack([rng.binomial(1, 0.5, n), rng.normal(0, 1, n)], axis=1)
    time = np.exp(2.0 + X @ [0.6, -0.4]) * rng.weibull(1.4, n)
    limit = rng.uniform(3, 25, n)
    return {
        "N": n,
        "time": np.minimum(time, limit),
        "event": (time <= limit).astype(int),
        "X": X,
    }


def _items(rng: np.random.Generator) -> Data:
    items, persons = 10, 60
    ability, difficulty = rng.normal(size=persons), rng.normal(0, 1.2, items)
    slope = rng.lognormal(0, 0.4, items)
    item, person = (i.ravel() for i in np.meshgrid(range(items), range(persons)))
    logit = slope[item] * (ability[person] - difficulty[item])
    y = rng.binomial(1, 1 / (1 + np.exp(-logit)))
    return {
        "I": items,
        "J": persons,
        "N": y.size,
        "item": item + 1,
        "person": person + 1,
        "y": y,
    }


def _slopes(rng: np.random.Generator) -> Data:
    groups, each = 15, 12
    covariance = [[1.0, -0.25], [-0.25, 0.36]]
    beta = rng.multivariate_normal([2.0, -0.7], covariance, groups)
    group = np.repeat(np.arange(groups), each)
    x = rng.normal(size=group.size)
    y = beta[group, 0] + beta[group, 1] * x + rng.normal(0, 0.8, group.size)
    return {"N": y.size, "J": groups, "group": group + 1, "x": x, "y": y}


def _horseshoe(rng: np.random.Generator) -> Data:
    n, d = 100, 10
    X = rng.normal(size=(n, d))
    y = 1.0 + X[:, 0] * 2.0 - X[:, 1] * 1.0 + rng.normal(0, 1, n)
    return {"N": n, "D": d, "X": X, "y": y, "scale_global": 0.025}


def _autoregression(rng: np.random.Generator) -> Data:
    y = list(rng.normal(size=5))
    weights = np.array([0.7, -0.4, 0.2, 0.15, -0.1])
    for _ in range(195):
        y.append(0.2 + weights @ y[:-6:-1] + rng.normal(0, 0.15))
    return {"K": 5, "T": 200, "y": y}


def _arma(rng: np.random.Generator) -> Data:
    y, last = [0.0], 0.0
    for noise in rng.normal(0, 0.15, 199):
        y.append(0.1 + 0.9 * y[-1] + 0.4 * last + noise)
        last = noise
    return {"T": 200, "y": y}


def _change(rng: np.random.Generator) -> Data:
    y = np.concatenate([rng.poisson(3.0, 40), rng.poisson(0.9, 71)])
    return {"r_early": 1.0, "r_late": 1.0, "T": y.size, "y": y}


def _growth(rng: np.random.Generator) -> Data:
    age = np.array([8.0, 15, 22, 29, 36])
    alpha, beta = rng.normal(242, 14, (20, 1)), rng.normal(6.2, 0.5, (20, 1))
    weight = alpha + beta * (age - 22) + rng.normal(0, 6, (20, 5))
    return {"J": 20, "T": 5, "age": age, "age_mean": 22.0, "weight": weight}


def _dose(rng: np.random.Generator) -> Data:
    x = np.sort(rng.uniform(1, 31, 27))
    y = 2.65 - 0.97 * 0.87**x + rng.normal(0, 0.09, x.size)
    return {"N": 27, "x": x, "Y": y}


SIMULATORS: dict[str, Callable[[np.random.Generator], Data]] = {
    "arma11": _arma,
    "autoregression": _autoregression,
    "change_point": _change,
    "dose_growth": _dose,
    "eight_schools_centred": _schools,
    "eight_schools_noncentred": _schools,
    "garch11": _garch,
    "gp_regression": _gp,
    "growth_curves": _growth,
    "hmm_gaussian": _hmm,
    "horseshoe": _horseshoe,
    "item_response_2pl": _items,
    "lotka_volterra": _lotka_volterra,
    "normal_mixture": _mixture,
    "overdispersed_counts": _counts,
    "radon": _radon,
    "temperatures_by_year": _temperatures,
    "test_scores": _scores,
    "varying_slopes": _slopes,
    "weibull_survival": _survival,
    "wells": _wells,
}
