"""Simulated data for programs with many latent variables, ODEs or several modes."""

from collections.abc import Callable
from typing import Any

import numpy as np

Data = dict[str, Any]


def _inv_logit(x):
    return 1 / (1 + np.exp(-x))


def _captures(rng: np.random.Generator) -> Data:
    caught = rng.uniform(size=(87, 5)) < [0.3, 0.5, 0.2, 0.4, 0.6]
    caught = caught[caught.any(1)]
    y = np.zeros((180, 5), int)
    y[: len(caught)] = caught
    return {"M": 180, "T": 5, "y": y}


def _topics(rng: np.random.Generator) -> Data:
    words = np.array([[0.4, 0.3, 0.2, 0.05, 0.05], [0.05, 0.05, 0.1, 0.3, 0.5]])
    share = rng.dirichlet([0.5, 0.5], 10)
    doc = np.repeat(np.arange(10), 20)
    topic = (rng.uniform(size=doc.size) > share[doc, 0]).astype(int)
    w = [rng.choice(5, p=words[k]) + 1 for k in topic]
    sizes = {"K": 2, "V": 5, "D": 10, "N": doc.size}
    prior = {"alpha": [1.0, 1.0], "beta": [1.0] * 5}
    return {**sizes, "w": w, "doc": doc + 1, **prior}


def _areas(rng: np.random.Generator) -> Data:
    side = 6
    index = np.arange(side * side).reshape(side, side)
    right = np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()])
    down = np.stack([index[:-1].ravel(), index[1:].ravel()])
    edges = np.concatenate([right, down], axis=1)
    smooth = np.sin(np.arange(side) / 2)[:, None] + np.cos(np.arange(side) / 3)
    x = rng.normal(size=index.size)
    exposure = rng.uniform(20, 200, index.size)
    log_rate = -1.5 + 0.3 * x + 0.4 * smooth.ravel() + rng.normal(0, 0.2, index.size)
    return {
        "N": index.size,
        "E": edges.shape[1],
        "first": edges[0] + 1,
        "second": edges[1] + 1,
        "y": rng.poisson(exposure * np.exp(log_rate)),
        "exposure": exposure,
        "x": x,
        "scaling": 0.5,
    }


def _epidemic(rng: np.random.Generator) -> Data:
    state, cases, step = np.array([762.0, 1.0, 0.0]), [], 0.001
    for i in range(1, 14_001):
        new, gone = 1.7 * state[0] * state[1] / 763, 0.5 * state[1]
        state = state + step * np.array([-new, new - gone, gone])
        if i % 1000 == 0:
            cases.append(rng.poisson(state[1] * rng.gamma(20, 1 / 20)))
    return {
        "T": 14,
        "y0": [762.0, 1.0, 0.0],
        "t0": 0.0,
        "ts": np.arange(1.0, 15),
        "N": 763,
        "cases": cases,
    }


def _drug(rng: np.random.Generator) -> Data:
    times, concentration = np.arange(0.5, 10.5, 0.5), []
    c, step = 0.0, 0.001
    for i in range(1, 10_001):
        t = i * step
        change = np.exp(-0.75 * t) * 100 * 0.75 / 2 - 1.0 / 2 * c / (0.25 + c)
        c = c + step * change
        if i % 500 == 0:
            concentration.append(c * np.exp(rng.normal(0, 0.15)))
    shape = {"N": 20, "times": times, "t0": 0.0, "dose": 100.0, "V": 2.0}
    return {**shape, "concentration": concentration}


def _seeds(rng: np.random.Generator) -> Data:
    x1, x2 = np.repeat([0, 1], [11, 10]), np.tile([0, 1], 11)[:21]
    size = rng.integers(4, 80, 21)
    logit = -0.5 + 0.1 * x1 + 1.3 * x2 - 0.8 * x1 * x2 + rng.normal(0, 0.3, 21)
    germinated = rng.binomial(size, _inv_logit(logit))
    return {"I": 21, "n": germinated, "N": size, "x1": x1, "x2": x2}


def _volatility(rng: np.random.Generator) -> Data:
    h, path = -1.0, []
    for noise in rng.normal(0, 0.3, 80):
        h = -1.0 + 0.9 * (h + 1.0) + noise
        path.append(h)
    return {"T": 80, "y": np.exp(np.array(path) / 2) * rng.normal(size=80)}


def _sparse(rng: np.random.Generator) -> Data:
    n, d = 120, 20
    x = rng.normal(size=(n, d))
    y = rng.binomial(1, _inv_logit(0.3 + 2.0 * x[:, 0] - 1.5 * x[:, 1]))
    return {
        "n": n,
        "d": d,
        "y": y,
        "x": x,
        "scale_icept": 10.0,
        "scale_global": 0.02,
        "nu_global": 1,
        "nu_local": 1,
        "slab_scale": 2.0,
        "slab_df": 100,
    }


def _acceleration(rng: np.random.Generator) -> Data:
    x = np.sort(rng.uniform(2, 58, 133))
    mean = -60 * np.exp(-0.5 * ((x - 21) / 5) ** 2) * np.sin((x - 12) / 5)
    y = mean + rng.normal(0, np.where(x < 14, 2.0, 22.0))
    scaled = (x - x.mean()) / x.std()
    centres = np.linspace(scaled.min(), scaled.max(), 8)
    basis = np.exp(-0.5 * ((scaled[:, None] - centres) / 0.5) ** 2)
    return {
        "N": 133,
        "Y": y,
        "Ks": 1,
        "Xs": scaled[:, None],
        "nb_1": 1,
        "knots_1": 8,
        "Zs_1_1": basis,
        "prior_only": 0,
    }


def _unordered(rng: np.random.Generator) -> Data:
    which = rng.choice(3, size=150, p=[0.3, 0.4, 0.3])
    y = rng.normal(np.array([-6.0, 0.0, 7.0])[which], [1.0, 1.5, 1.0][0])
    return {"K": 3, "N": 150, "y": y}


def _gp_counts(rng: np.random.Generator) -> Data:
    x = np.linspace(-10, 10, 11)
    return {"N": 11, "x": x, "k": rng.poisson(np.exp(2 + np.sin(x / 3)))}


def _dogs(rng: np.random.Generator) -> Data:
    y = np.zeros((30, 25), int)
    for dog in range(30):
        for trial in range(25):
            shocks = y[dog, :trial].sum()
            logit = 2.0 - 0.35 * (trial - shocks) - 0.2 * shocks
            y[dog, trial] = rng.binomial(1, _inv_logit(logit))
    return {"n_dogs": 30, "n_trials": 25, "y": y}


def _radon_centred(rng: np.random.Generator) -> Data:
    counties = 25
    county = np.repeat(np.arange(counties), rng.integers(2, 20, counties))
    alpha = rng.normal(1.5, 0.35, counties)
    beta = rng.normal(-0.7, 0.3, counties)
    ground = rng.binomial(1, 0.3, county.size)
    mean = alpha[county] + beta[county] * ground
    return {
        "N": county.size,
        "J": counties,
        "county_idx": county + 1,
        "floor_measure": ground,
        "log_radon": rng.normal(mean, 0.75),
    }


def _latent_regression(rng: np.random.Generator) -> Data:
    items, persons = 6, 60
    W = np.stack([np.ones(persons), rng.binomial(1, 0.5, persons)], axis=1)
    ability = 0.4 + 0.6 * W[:, 1] + rng.normal(size=persons)
    slope, difficulty = rng.lognormal(0.2, 0.4, items), rng.normal(size=items)
    item, person = (i.ravel() for i in np.meshgrid(range(items), range(persons)))
    logit = slope[item] * ability[person] - difficulty[item]
    return {
        "I": items,
        "J": persons,
        "N": item.size,
        "ii": item + 1,
        "jj": person + 1,
        "y": rng.binomial(1, _inv_logit(logit)),
        "K": 2,
        "W": W,
    }


def _trend(rng: np.random.Generator) -> Data:
    t = np.linspace(0, 1, 150)
    angle = 2 * np.pi * np.outer(t, [6, 12])
    X = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    change = np.linspace(0.1, 0.8, 12)
    trend = 0.2 + 0.5 * t - 0.9 * np.maximum(t - 0.4, 0)
    y = trend + X @ [0.1, 0.05, -0.1, 0.02] + rng.normal(0, 0.08, t.size)
    sizes = {"T": t.size, "K": 4, "S": change.size}
    return {
        **sizes,
        "t": t,
        "y": y,
        "t_change": change,
        "X": X,
        "sigmas": [10.0] * 4,
        "tau": 0.05,
    }


LATENT_SIMULATORS: dict[str, Callable[[np.random.Generator], Data]] = {
    "acceleration": _acceleration,
    "areal_counts": _areas,
    "capture_times": _captures,
    "dogs": _dogs,
    "drug_elimination": _drug,
    "epidemic": _epidemic,
    "gp_counts": _gp_counts,
    "latent_regression": _latent_regression,
    "radon_centred": _radon_centred,
    "seeds": _seeds,
    "sparse_logistic": _sparse,
    "stochastic_volatility": _volatility,
    "topics": _topics,
    "trend_changes": _trend,
    "unordered_mixture": _unordered,
}
