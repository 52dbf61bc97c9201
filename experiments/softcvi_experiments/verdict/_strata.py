"""Scales of their own in each group, polls and clerks: groups that differ much."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from softcvi_experiments.verdict._lattice import nested
from softcvi_experiments.verdict._little_data import one_each
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._priors import around
from softcvi_experiments.verdict._storeys import (
    effects_given,
    misfit,
    normal,
    spread,
)


def _many_scales(theta, data):
    z = theta["effect"] * jnp.exp(-theta["log_scale"])[:, None]
    rest = (data["y"] - theta["effect"]) / data["sd"]
    fit = -0.5 * (jnp.sum(z**2) + jnp.sum(rest**2))
    fit -= z.shape[1] * jnp.sum(theta["log_scale"])
    return fit + around(theta, log_scale=(0, 1))


def many_scales(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A funnel for each of several kinds of effects, some with weak data."""
    kinds, each = ((2, 2), (5, 3), (10, 4))[seed % 3]
    sd = rng.uniform(0.4, 3, (kinds, 1))
    y = np.exp(rng.normal(size=(kinds, 1))) * rng.normal(size=(kinds, each))
    y += sd * rng.normal(size=y.shape)
    u = np.linspace(-7, 7, 2801)
    own = np.exp(2 * u)
    rows = []
    for seen, error in zip(y, sd[:, 0] ** 2, strict=True):
        height = -0.5 * (np.sum(seen**2) / (own + error) + each * np.log(own + error))
        weights = special.softmax(height - 0.5 * u**2)
        gain = own / (own + error)
        middle, shrunk = weights @ u, weights @ gain
        spread = weights @ (gain * error) + weights @ (gain - shrunk) ** 2 * seen**2
        rows.append((middle, weights @ (u - middle) ** 2, shrunk * seen, spread))
    parts = [np.array(column) for column in zip(*rows, strict=True)]
    mean = {"log_scale": parts[0], "effect": parts[2]}
    variance = {"log_scale": parts[1], "effect": parts[3]}
    shapes = {"log_scale": (kinds,), "effect": (kinds, each)}
    target = density(_many_scales, shapes, {"y": y, "sd": sd})
    return from_moments(target, mean, variance, "quadrature")


def _polls(theta, data):
    mean = theta["start"] + data["until"] @ theta["step"] + data["of"] @ theta["house"]
    fit = misfit(data, mean) + around(theta, start=(50, 10), house=(0, 1.5))
    return fit + spread(theta, "step", "log_step") + around(theta, log_step=(-0.5, 0.7))


def polls(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Support of a party that drifts, by polls of houses that lean to one side."""
    weeks, houses, count = ((4, 2, 6), (12, 4, 20), (35, 8, 70))[seed % 3]
    when, who = rng.integers(0, weeks, count), rng.integers(0, houses, count)
    until = np.tri(weeks)[when][:, 1:]
    of = np.eye(houses)[who]
    sd = rng.uniform(1, 3, count)
    step = rng.uniform(0.2, 1) * rng.normal(size=weeks - 1)
    y = rng.normal(45, 5) + until @ step + of @ rng.normal(0, 1.5, houses)
    y += sd * rng.normal(size=count)
    data = {"until": until, "of": of, "y": y, "sd": sd}
    design = np.column_stack([np.ones(count), until, of]) / sd[:, None]

    def conditional(u):
        own = np.repeat(u, weeks - 1, axis=1)
        fixed = np.zeros((len(u), houses)) + np.log(1.5)
        logs = np.concatenate([np.full((len(u), 1), np.log(10.0)), own, fixed], axis=1)
        height, mean, variance = effects_given(logs, design, (y - 50) / sd, 1.0)
        mean[:, 0] += 50
        return height + normal(u, -0.5, 0.7), mean, variance

    outer = {"log_step": (-5.0, 4.0)}
    inner = {"start": (), "step": (weeks - 1,), "house": (houses,)}
    return nested(_polls, outer, inner, data, conditional, 201)


def _clerks(theta, data):
    k, linear = data["k"], theta["mu"] + jnp.exp(theta["log_tau"]) * theta["clerk"]
    rows = data["y"] * linear - (data["y"] + k * data["n"]) * jax.nn.softplus(
        linear - jnp.log(k)
    )
    fit = jnp.sum(rows) - 0.5 * jnp.sum(theta["clerk"] ** 2)
    return fit + around(theta, mu=(1, 1), log_tau=(-0.7, 0.7))


def clerks(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Errors of clerks on few days, more uneven than chance, in standard units."""
    count, k = (4, 12, 30)[seed % 3], rng.uniform(0.7, 3)
    n = rng.integers(1, 5, count)
    linear = rng.normal(1, 0.5) + rng.uniform(0.2, 0.8) * rng.normal(size=count)
    # The sum of days is what matters.
    y = rng.poisson(np.exp(linear) * rng.gamma(k * n, 1 / k))
    data = {"y": y, "n": n, "k": k}

    def share(eta):
        return special.expit(eta - np.log(k))

    def slope(eta):
        return y - (y + k * n) * share(eta)

    def bend(eta):
        return -(y + k * n) * share(eta) * (1 - share(eta))

    def height(eta):
        total = (y + k * n)[:, None]
        return y[:, None] * eta - total * np.logaddexp(0, eta - np.log(k))

    def conditional(u):
        mu, tau = u[:, :1] + np.zeros(count), np.exp(u[:, 1:]) + np.zeros(count)
        reach = tau**2 * (y + k * n) + 1e-6
        total, mean, variance = one_each(mu, tau, reach, slope, bend, height, wide=True)
        top = total.sum(axis=1) + normal(u, [1, -0.7], [1, 0.7])
        return top, (mean - mu) / tau, variance / tau**2

    outer = {"mu": (-5.8, 7.8), "log_tau": (-5.4, 3.2)}
    return nested(_clerks, outer, {"clerk": (count,)}, data, conditional, 31)
