"""Models as users of NumPyro write them, with sites on their own supports."""

import jax.numpy as jnp
import numpy as np
from scipy import special, stats

from softcvi.adapters import from_numpyro
from softcvi_experiments.verdict._lattice import (
    Given,
    lattice_moments,
    linear_given,
    split,
)
from softcvi_experiments.verdict._little_data import groups_given, successes_each
from softcvi_experiments.verdict._posterior import RandomPosterior, from_moments
from softcvi_experiments.verdict._transfer import chain_moments


def _with_sites(sites: np.ndarray, given: Given) -> Given:
    """Adds what is a function of the lattice's points to what is given them."""
    height, mean, variance = given
    mean = np.concatenate([sites, mean], axis=1)
    return height, mean, np.concatenate([np.zeros_like(sites), variance], axis=1)


def _posterior(model, args, shapes, conditional, low, high, points) -> RandomPosterior:
    """An answer for sites that are functions of the lattice, or exact given it."""
    found = lattice_moments(conditional, np.array(low), np.array(high), points)
    mean, variance = (split(part[len(low) :], shapes) for part in found)
    target = from_numpyro(model, *(jnp.asarray(a, float) for a in args))
    return from_moments(target, mean, variance, "quadrature")


def _half_normal(log_x, scale):
    """Log density of the logarithm of a half-normal variable."""
    return log_x - 0.5 * (np.exp(log_x) / scale) ** 2


def _schools(y, sd, unit):
    import numpyro
    import numpyro.distributions as dist

    mu = numpyro.sample("mu", dist.Normal(0.0, 5 * unit))
    tau = numpyro.sample("tau", dist.HalfNormal(5 * unit))
    with numpyro.plate("school", y.shape[0]):
        effect = numpyro.sample("effect", dist.Normal(mu, tau))
        numpyro.sample("y", dist.Normal(effect, sd), obs=y)


def schools(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Effects of coaching in schools, centred, with a half-normal spread."""
    count, unit = (4, 8, 20)[seed % 3], 10 ** rng.uniform(-1, 2)
    sd, tau = unit * rng.uniform(0.7, 1.8, count), unit * rng.choice([0.0, 0.5, 2.0])
    y = unit * rng.normal() + np.hypot(tau, sd) * rng.normal(size=count)

    def conditional(u):
        tau = np.exp(u)
        height, mean, variance = groups_given(y, sd, tau, 0.0, 5 * unit)
        height += _half_normal(u[:, 0], 5 * unit)
        return _with_sites(tau, (height, mean, variance))

    shapes = {"tau": (), "mu": (), "effect": (count,)}
    box = [np.log(unit) - 25], [np.log(unit) + 5]
    return _posterior(_schools, (y, sd, unit), shapes, conditional, *box, 3001)


def _regression(x, y, unit):
    import numpyro
    import numpyro.distributions as dist

    level = numpyro.sample("level", dist.Normal(0.0, 10 * unit))
    with numpyro.plate("predictor", x.shape[1]):
        beta = numpyro.sample("beta", dist.Normal(0.0, 3 * unit))
    sigma = numpyro.sample("sigma", dist.HalfNormal(3 * unit))
    with numpyro.plate("row", y.shape[0]):
        numpyro.sample("y", dist.Normal(level + x @ beta, sigma), obs=y)


def model_regression(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A regression with the spread of its noise on its own scale."""
    rows, size = ((10, 1), (40, 8), (60, 40))[seed % 3]
    unit = 10 ** rng.uniform(-2, 2)
    x = rng.normal(size=(rows, size)) + 0.7 * rng.normal(size=(rows, 1))
    y = unit * (rng.normal(0, 5) + x @ rng.normal(0, 1, size) + rng.normal(size=rows))
    design = np.column_stack([np.ones(rows), x])
    prior_sd = unit * np.append(10.0, np.full(size, 3.0))

    def conditional(u):
        designs = np.broadcast_to(design, (len(u), *design.shape))
        sd = np.exp(u[:, 0])
        height, mean, variance = linear_given(designs, y, sd, 0.0, prior_sd)
        height += _half_normal(u[:, 0], 3 * unit)
        return _with_sites(np.exp(u), (height, mean, variance))

    shapes = {"sigma": (), "level": (), "beta": (size,)}
    box = [np.log(unit) - 6], [np.log(unit) + 4]
    return _posterior(_regression, (x, y, unit), shapes, conditional, *box, 301)


def _clinics(y, n):
    import numpyro
    import numpyro.distributions as dist

    mu = numpyro.sample("mu", dist.Normal(0.0, 1.5))
    tau = numpyro.sample("tau", dist.HalfNormal(1.0))
    with numpyro.plate("clinic", y.shape[0]):
        effect = numpyro.sample("effect", dist.Normal(0.0, 1.0))
        linear = mu + tau * effect
        numpyro.sample("y", dist.Binomial(n, logits=linear), obs=y)


def clinics(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Successes in clinics that differ, written without a centre."""
    count = (3, 10, 25)[seed % 3]
    n = rng.integers(3, 40, count)
    linear = rng.normal(-1, 1) + rng.uniform(0, 1.2) * rng.normal(size=count)
    y = rng.binomial(n, special.expit(linear))

    def conditional(u):
        mu, tau = u[:, :1] + np.zeros(count), np.exp(u[:, 1:]) + np.zeros(count)
        total, mean, variance = successes_each(mu, tau, y, n)
        height = total.sum(axis=1) - 0.5 * (u[:, 0] / 1.5) ** 2
        height += _half_normal(u[:, 1], 1.0)
        given = height, (mean - mu) / tau, variance / tau**2
        return _with_sites(np.stack([u[:, 0], np.exp(u[:, 1])], axis=1), given)

    shapes = {"mu": (), "tau": (), "effect": (count,)}
    box = [-9.0, -20.0], [9.0, 1.9]
    return _posterior(_clinics, (y, n), shapes, conditional, *box, 61)


def _tumours(y, n):
    import numpyro
    import numpyro.distributions as dist

    share = numpyro.sample("share", dist.Beta(2.0, 2.0))
    alike = numpyro.sample("alike", dist.Gamma(2.0, 0.1))
    with numpyro.plate("group", y.shape[0]):
        chance = numpyro.sample("chance", dist.Beta(share * alike, (1 - share) * alike))
        numpyro.sample("y", dist.Binomial(n, probs=chance), obs=y)


def tumours(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Tumours in groups of rats whose chances are beta variables."""
    count = (4, 12, 40)[seed % 3]
    n = rng.integers(5, 40, count)
    share, alike = rng.uniform(0.1, 0.4), rng.uniform(4, 30)
    y = rng.binomial(n, rng.beta(share * alike, (1 - share) * alike, count))

    def conditional(u):
        share, alike = special.expit(u[:, :1]), np.exp(u[:, 1:])
        a, b = share * alike, (1 - share) * alike
        rows = special.betaln(a + y, b + n - y) - special.betaln(a, b)
        height = rows.sum(axis=1) + 2 * np.log(share * (1 - share))[:, 0]
        height += 2 * u[:, 1] - 0.1 * alike[:, 0]
        mean = (a + y) / (alike + n)
        given = height, mean, mean * (1 - mean) / (alike + n + 1)
        return _with_sites(np.concatenate([share, alike], axis=1), given)

    shapes = {"share": (), "alike": (), "chance": (count,)}
    box = [-8.0, -8.0], [8.0, 6.5]
    return _posterior(_tumours, (y, n), shapes, conditional, *box, 201)


def _two_kinds(y):
    import numpyro
    import numpyro.distributions as dist

    weight = numpyro.sample("weight", dist.Beta(2.0, 2.0))
    with numpyro.plate("kind", 2):
        mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
    parts = dist.Categorical(probs=jnp.stack([weight, 1 - weight]))
    with numpyro.plate("row", y.shape[0]):
        mixture = dist.MixtureSameFamily(parts, dist.Normal(mean, 1.0))
        numpyro.sample("y", mixture, obs=y)


def two_kinds(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A mixture of two normals without names, and their shares."""
    count, gap = (10, 30)[seed % 2], rng.uniform(1.5, 6)
    kind = rng.uniform(size=count) < rng.uniform(0.3, 0.7)
    y = rng.normal(0, 2) + gap * kind + rng.normal(size=count)

    def conditional(u):
        terms = [
            stats.logistic.logcdf(sign * u[:, :1]) - 0.5 * (y - u[:, i : i + 1]) ** 2
            for i, sign in ((1, 1), (2, -1))
        ]
        height = np.logaddexp(*terms).sum(axis=1)
        height -= 0.5 * np.sum((u[:, 1:] / 5) ** 2, axis=1)
        height += 2 * (special.log_expit(u[:, 0]) + special.log_expit(-u[:, 0]))
        none = np.zeros((len(u), 0))
        sites = np.concatenate([special.expit(u[:, :1]), u[:, 1:]], axis=1)
        return _with_sites(sites, (height, none, none))

    shapes = {"weight": (), "mean": (2,)}
    box = [-10.0, -22.0, -22.0], [10.0, 22.0, 22.0]
    return _posterior(_two_kinds, (y,), shapes, conditional, *box, 71)


def _visits(y, step):
    import numpyro
    import numpyro.distributions as dist

    level = numpyro.sample("level", dist.GaussianRandomWalk(step, y.shape[0]))
    numpyro.sample("y", dist.Poisson(jnp.exp(level + 1.0)), obs=y)


def visits(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Counts with a random walk as a site."""
    size, step = (3, 20, 60)[seed % 3], rng.uniform(0.2, 0.6)
    level = np.cumsum(step * rng.normal(size=size))
    y = rng.poisson(np.exp(level + 1.0))
    grid = np.linspace(-8, 8, 641)
    rows = y[:, None] * grid - np.exp(grid + 1.0)
    rows[0] -= 0.5 * (grid / step) ** 2
    _, mean, variance = chain_moments(
        grid, rows, lambda x, before: -0.5 * ((x - before) / step) ** 2
    )
    target = from_numpyro(_visits, jnp.asarray(y, float), jnp.asarray(step))
    return from_moments(target, {"level": mean}, {"level": variance}, "quadrature")


def _twins(y):
    import numpyro
    import numpyro.distributions as dist

    with numpyro.plate("outcome", 2):
        scale = numpyro.sample("scale", dist.LogNormal(0.0, 1.0))
    factor = numpyro.sample("factor", dist.LKJCholesky(2, 2.0))
    numpyro.deterministic("rho", factor[1, 0])
    with numpyro.plate("pair", y.shape[0]):
        normal = dist.MultivariateNormal(scale_tril=scale[:, None] * factor)
        numpyro.sample("y", normal, obs=y)


def twins(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Scales and correlation of pairs, with an LKJ prior."""
    count, rho = (6, 30)[seed % 2], rng.uniform(-0.9, 0.95)
    y = rng.normal(size=(count, 2))
    y[:, 1] = rho * y[:, 0] + np.sqrt(1 - rho**2) * y[:, 1]
    y *= 10 ** rng.uniform(-0.5, 0.5, 2)

    def conditional(u):
        rho, logs = np.tanh(u[:, 0]), u[:, 1:]
        left = 1 - rho**2
        z = y[None] * np.exp(-logs)[:, None, :]
        square = np.sum(z**2, axis=(1, 2)) - 2 * rho * np.sum(z.prod(axis=2), axis=1)
        height = -0.5 * square / left - count * (0.5 * np.log(left) + logs.sum(axis=1))
        height -= 0.5 * np.sum(logs**2, axis=1)
        # The density (1 - rho^2) of the correlation, and of its own transformation.
        height += 2 * np.log(left)
        sites = np.column_stack([rho, np.exp(logs)])
        none = np.zeros((len(u), 0))
        return _with_sites(sites, (height, none, none))

    shapes = {"rho": (), "scale": (2,)}
    box = [-4.0, -5.0, -5.0], [4.0, 5.0, 5.0]
    return _posterior(_twins, (y,), shapes, conditional, *box, 61)
