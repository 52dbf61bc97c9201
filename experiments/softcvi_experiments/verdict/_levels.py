"""Hierarchies with several scales: normal given these, or one group at a time."""

import jax
import jax.numpy as jnp
import numpy as np

from softcvi_experiments.verdict._lattice import nested
from softcvi_experiments.verdict._little_data import one_each, successes_each
from softcvi_experiments.verdict._posterior import RandomPosterior


def _scale_prior(theta, data, *names):
    return -0.5 * sum((theta[n] - data["log_unit"]) ** 2 for n in names)


def _normal_given(logs, design, y, noise, whole=None):
    """Height, means and variances of normals around zero with these log sds.

    ``whole`` makes sites of them, which are the normals themselves by default.
    """
    gram, shift = design.T @ design / noise**2, design.T @ y / noise**2
    # In units of the prior, point by point.
    sd = np.exp(logs)
    precision = gram * sd[:, :, None] * sd[:, None, :] + np.eye(logs.shape[1])
    covariance = np.linalg.inv(precision)
    mean = np.einsum("nij,nj->ni", covariance, shift * sd)
    height = 0.5 * np.sum(mean * shift * sd, axis=1)
    height -= 0.5 * np.linalg.slogdet(precision)[1]
    if whole is None:
        return height, mean * sd, np.diagonal(covariance, axis1=1, axis2=2) * sd**2
    parts = whole * sd[:, None, :]
    variance = np.einsum("nij,nij->ni", parts @ covariance, parts)
    return height, (mean * sd) @ whole.T, variance


def _scales_box(log_unit, *names):
    return dict.fromkeys(names, (log_unit - 6.5, log_unit + 5.5))


def _crossed(theta, data):
    mean = theta["level"] + theta["judge"][:, None] + theta["wine"]
    rows = ((data["y"] - mean) / data["noise"]) ** 2
    fit = -0.5 * jnp.sum(data["tasted"] * rows)
    for name, scale in (("judge", "log_judge"), ("wine", "log_wine")):
        z = theta[name] * jnp.exp(-theta[scale])
        fit -= 0.5 * jnp.sum(z**2) + z.size * theta[scale]
    fit -= 0.5 * (theta["level"] / data["wide"]) ** 2
    return fit + _scale_prior(theta, data, "log_judge", "log_wine")


def crossed(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Judges who tasted some of the wines: crossed effects, centred."""
    judges, wines = ((3, 4), (8, 10), (15, 25))[seed % 3]
    unit = 10 ** rng.uniform(-2, 2)
    judge, wine = (
        unit * rng.uniform(0.3, 1.5) * rng.normal(size=n) for n in (judges, wines)
    )
    noise = unit * rng.uniform(0.5, 1.2)
    y = unit * rng.normal(0, 3) + judge[:, None] + wine
    y += noise * rng.normal(size=(judges, wines))
    tasted = (rng.uniform(size=y.shape) < 0.7).astype(float)
    data = {"y": y, "tasted": tasted, "noise": noise, "wide": 5 * unit}
    data["log_unit"] = np.log(unit) - 0.3
    at = np.argwhere(tasted)
    design = np.concatenate(
        [np.ones((len(at), 1)), np.eye(judges)[at[:, 0]], np.eye(wines)[at[:, 1]]], 1
    )

    def conditional(u):
        level = np.full((len(u), 1), np.log(5 * unit))
        logs = np.concatenate([level, np.repeat(u, (judges, wines), axis=1)], axis=1)
        seen = y[at[:, 0], at[:, 1]]
        height, *rest = _normal_given(logs, design, seen, noise)
        return height - 0.5 * np.sum((u - data["log_unit"]) ** 2, axis=1), *rest

    outer = _scales_box(data["log_unit"], "log_judge", "log_wine")
    inner = {"level": (), "judge": (judges,), "wine": (wines,)}
    return nested(_crossed, outer, inner, data, conditional, 31)


def _slopes(theta, data):
    line = theta["start"] + theta["slope"] * data["t"][:, None]
    fit = -0.5 * jnp.sum(((data["y"] - line) / data["noise"]) ** 2)
    means = {"start": theta["mean"][0], "slope": theta["mean"][1]}
    for name, mean in means.items():
        z = (theta[name] - mean) * jnp.exp(-theta["log_" + name])
        fit -= 0.5 * jnp.sum(z**2) + z.size * theta["log_" + name]
    fit -= 0.5 * jnp.sum((theta["mean"] / data["wide"]) ** 2)
    return fit + _scale_prior(theta, data, "log_start", "log_slope")


def growth_of_children(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Few readings of each of several children: lines that differ, centred."""
    children, unit = (4, 12, 25)[seed % 3], 10 ** rng.uniform(-2, 2)
    t = np.linspace(-1, 1, 3)
    noise = unit * rng.uniform(0.3, 1)
    start = unit * (3 + rng.uniform(0.3, 1.5) * rng.normal(size=children))
    slope = unit * (1 + rng.uniform(0.2, 1) * rng.normal(size=children))
    y = start + slope * t[:, None] + noise * rng.normal(size=(3, children))
    data = {"t": t, "y": y, "noise": noise, "wide": 8 * unit}
    data["log_unit"] = np.log(unit) - 0.5
    eye = np.eye(children)
    columns = [np.kron(t[:, None] ** p, eye) for p in (0, 1)]
    design = np.concatenate(
        [c.sum(axis=1, keepdims=True) for c in columns] + columns, 1
    )
    # Means and differences from them are independent before; then they are added.
    whole = np.eye(2 + 2 * children)
    whole[2:, :2] = np.kron(np.eye(2), np.ones((children, 1)))

    def conditional(u):
        means = np.full((len(u), 2), np.log(8 * unit))
        logs = np.concatenate([means, np.repeat(u, children, axis=1)], axis=1)
        height, *rest = _normal_given(logs, design, y.ravel(), noise, whole)
        return height - 0.5 * np.sum((u - data["log_unit"]) ** 2, axis=1), *rest

    outer = _scales_box(data["log_unit"], "log_start", "log_slope")
    inner = {"mean": (2,), "start": (children,), "slope": (children,)}
    return nested(_slopes, outer, inner, data, conditional, 31)


def _map(theta, data):
    area = theta["area"]
    rows = data["seen"] * ((data["y"] - area) / data["noise"]) ** 2
    gaps = area[data["left"].astype(int)] - area[data["right"].astype(int)]
    near, far = jnp.exp(-2 * theta["log_near"]), jnp.exp(-2 * theta["log_far"])
    # The eigenvalues of the map are data.
    fit = 0.5 * jnp.sum(jnp.log(near * data["roots"] + far))
    fit -= 0.5 * (near * jnp.sum(gaps**2) + far * jnp.sum(area**2) + jnp.sum(rows))
    return fit + _scale_prior(theta, data, "log_near", "log_far")


def disease_map(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Areas of a map that are like their neighbours, some without data."""
    side, unit = (2, 4, 7)[seed % 3], 10 ** rng.uniform(-2, 2)
    index = np.arange(side**2).reshape(side, side)
    pairs = [(index[:-1], index[1:]), (index[:, :-1], index[:, 1:])]
    left, right = (np.concatenate([p[i].ravel() for p in pairs]) for i in (0, 1))
    links = np.zeros((left.size, side**2))
    links[np.arange(left.size), left] = 1
    links[np.arange(left.size), right] = -1
    laplacian = links.T @ links
    area = np.linalg.solve(
        np.linalg.cholesky(laplacian + 0.2 * np.eye(side**2)).T,
        rng.normal(size=side**2),
    )
    noise = unit * rng.uniform(0.4, 1)
    y = unit * area + noise * rng.normal(size=side**2)
    seen = (rng.uniform(size=side**2) < 0.8).astype(float)
    data = {
        "y": y,
        "seen": seen,
        "noise": noise,
        "left": left,
        "right": right,
        "roots": np.linalg.eigvalsh(laplacian).clip(0),
        "log_unit": np.log(unit),
    }

    def conditional(u):
        near, far = np.exp(-2 * (u.T - np.log(unit)))[:, :, None, None]
        precision = near * laplacian + far * np.eye(side**2)
        given = precision + np.diag(seen) * (unit / noise) ** 2
        covariance = np.linalg.inv(given)
        shift = seen * y * unit / noise**2
        mean = covariance @ shift
        height = 0.5 * mean @ shift
        height += 0.5 * np.linalg.slogdet(precision)[1]
        height -= 0.5 * np.linalg.slogdet(given)[1]
        height -= 0.5 * np.sum((u - np.log(unit)) ** 2, axis=1)
        variance = unit**2 * np.diagonal(covariance, axis1=1, axis2=2)
        return height, unit * mean, variance

    outer = _scales_box(np.log(unit), "log_near", "log_far")
    return nested(_map, outer, {"area": (side**2,)}, data, conditional, 31)


def _laboratories(theta, data):
    x = theta["log_variance"]
    z = (x - theta["mu"]) * jnp.exp(-theta["log_tau"])
    rows = -0.5 * (data["df"] * x + data["squares"] * jnp.exp(-x))
    prior = 0.5 * jnp.sum(z**2) + z.size * theta["log_tau"]
    hyper = ((theta["mu"] - data["guess"]) / 3) ** 2 + (theta["log_tau"] + 0.5) ** 2
    return jnp.sum(rows) - prior - 0.5 * hyper


def laboratories(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Precisions of laboratories that differ, from few repeats each."""
    count = (4, 12, 40)[seed % 3]
    df = rng.integers(1, 8, count).astype(float)
    guess = rng.normal(0, 6)
    log_variance = guess + rng.uniform(0.2, 1.5) * rng.normal(size=count)
    squares = np.exp(log_variance) * rng.chisquare(df)
    data = {"df": df, "squares": squares, "guess": guess + rng.normal()}

    def conditional(u):
        mu, tau = u[:, :1] + np.zeros(count), np.exp(u[:, 1:]) + np.zeros(count)
        small = np.log(squares)

        def pull(eta):
            return squares * np.exp(np.minimum(-eta, 600.0 - small.max()))

        total, mean, variance = one_each(
            mu,
            tau,
            np.abs(mu - small) + 0.5 * tau**2 * df + 3.0,
            lambda eta: 0.5 * (pull(eta) - df),
            lambda eta: -0.5 * pull(eta),
            lambda eta: -0.5 * (df[:, None] * eta + squares[:, None] * np.exp(-eta)),
            wide=True,
        )
        height = total.sum(axis=1) - 0.5 * ((u[:, 0] - data["guess"]) / 3) ** 2
        return height - 0.5 * (u[:, 1] + 0.5) ** 2, mean, variance

    outer = {"mu": (guess - 16, guess + 16), "log_tau": (-6.5, 3.5)}
    inner = {"log_variance": (count,)}
    return nested(_laboratories, outer, inner, data, conditional, 31)


def _unseen_groups(theta, data):
    linear = theta["group"]
    rows = data["y"] * linear - data["n"] * jax.nn.softplus(linear)
    z = (linear - theta["mu"]) * jnp.exp(-theta["log_tau"])
    prior = 0.5 * jnp.sum(z**2) + z.size * theta["log_tau"]
    hyper = (theta["mu"] / 1.5) ** 2 + ((theta["log_tau"] + 0.5) / 0.7) ** 2
    return jnp.sum(rows) - prior - 0.5 * hyper


def unseen_groups(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Wards of which some have no patients yet: funnels beside well-known logits."""
    count = (3, 10, 24)[seed % 3]
    n = rng.integers(1, 60, count) * (rng.uniform(size=count) < 0.75)
    linear = rng.normal(-1, 1) + rng.uniform(0.2, 1) * rng.normal(size=count)
    y = rng.binomial(n, 1 / (1 + np.exp(-linear)))
    data = {"y": y, "n": n}

    def conditional(u):
        mu, tau = u[:, :1] + np.zeros(count), np.exp(u[:, 1:]) + np.zeros(count)
        total, mean, variance = successes_each(mu, tau, y, n, wide=True)
        height = total.sum(axis=1) - 0.5 * (u[:, 0] / 1.5) ** 2
        return height - 0.5 * ((u[:, 1] + 0.5) / 0.7) ** 2, mean, variance

    outer = {"mu": (-10.0, 10.0), "log_tau": (-5.5, 4.0)}
    return nested(_unseen_groups, outer, {"group": (count,)}, data, conditional, 31)
