"""Groups with little data each: counts, shares, trials, batches, pumps."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from scipy import special

from softcvi.targets import UnconstrainedSpace, positive
from softcvi_experiments.verdict._lattice import nested
from softcvi_experiments.verdict._posterior import RandomPosterior

_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(31)


def _hyper(theta, data):
    location = (theta["mu"] - data["guess"]) / data["guess_sd"]
    return -0.5 * (location**2 + (theta["log_tau"] - data["log_tau"]) ** 2)


def one_each(mu, tau, reach, slope, bend, height, wide: bool = False):
    """Log total, mean and variance of each group, whose log density is concave.

    Args:
        mu: Location of each group, of shape (points, groups).
        tau: Its spread.
        reach: How far from ``mu`` the mode can be.
        slope: Derivative of ``height``, of one value for each group.
        bend: Second derivative.
        height: Log likelihood, of several values for each group.
        wide: For long tails: many even nodes instead of a few for normals.

    Example:
        >>> flat = np.zeros((1, 1)), np.ones((1, 1)), 1.0
        >>> none = lambda eta: 0 * eta
        >>> float(one_each(*flat, none, none, none)[2].item().__round__(6))
        1.0
    """
    nodes, log_weights = _NODES, 0.5 * _NODES**2 + np.log(_NODE_WEIGHTS)
    if wide:
        nodes = np.linspace(-12, 12, 161)
        log_weights = np.full(161, np.log(nodes[1] - nodes[0]))
    low, high = mu - reach, mu + reach
    for _ in range(70):
        middle = (low + high) / 2
        up = slope(middle) > (middle - mu) / tau**2
        low, high = np.where(up, middle, low), np.where(up, high, middle)
    sd = 1 / np.sqrt(1 / tau**2 - bend(middle))
    eta = middle[..., None] + sd[..., None] * nodes
    z = (eta - mu[..., None]) / tau[..., None]
    logs = height(eta) - 0.5 * z**2 + log_weights + np.log(sd / tau)[..., None]
    weights = special.softmax(logs, axis=-1)
    mean = np.sum(weights * eta, axis=-1)
    variance = np.sum(weights * (eta - mean[..., None]) ** 2, axis=-1)
    return special.logsumexp(logs, axis=-1), mean, variance


def successes_each(mu, tau, y, n, wide: bool = False):
    """Log total, mean and variance of the logit of each group, given its successes.

    Args:
        mu: Location of each logit, of shape (points, groups).
        tau: Its spread.
        y: Successes of each group.
        n: Its trials.
        wide: As for ``one_each``.

    Example:
        >>> even = np.zeros((1, 1)), np.ones((1, 1)), np.full(1, 3), np.full(1, 6)
        >>> abs(successes_each(*even)[1].round(6)).item()
        0.0
    """
    return one_each(
        mu,
        tau,
        tau**2 * n + 1e-9,
        lambda eta: y - n * special.expit(eta),
        lambda eta: -n * special.expit(eta) * special.expit(-eta),
        lambda eta: y[:, None] * eta - n[:, None] * np.logaddexp(0, eta),
        wide,
    )


def _box(data) -> dict:
    middle, reach = data["guess"], 8 * data["guess_sd"]
    spread = data["log_tau"]
    return {
        "mu": (middle - reach, middle + reach),
        "log_tau": (spread - 7.0, spread + 7.0),
    }


def _poisson_groups(theta, data):
    z = (theta["group"] - theta["mu"]) * jnp.exp(-theta["log_tau"])
    prior = -0.5 * jnp.sum(z**2) - z.size * theta["log_tau"]
    rows = data["y"] * theta["group"] - data["time"] * jnp.exp(theta["group"])
    return jnp.sum(rows) + prior + _hyper(theta, data)


def poisson_groups(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Counts of groups whose log rates differ, centred."""
    count = (5, 12, 30)[seed % 3]
    time, mu = 10 ** rng.uniform(-0.5, 1, count), rng.normal()
    tau = 10 ** rng.uniform(-0.7, 0.2)
    y = rng.poisson(time * np.exp(mu + tau * rng.normal(size=count)))

    def exp(eta):
        return np.exp(np.minimum(eta, 300.0))

    data = {"y": y, "time": time, "guess": 0.0, "guess_sd": 2.0, "log_tau": -0.5}

    def conditional(u):
        mu, tau = u[:, :1] + np.zeros(count), np.exp(u[:, 1:]) + np.zeros(count)
        total, mean, variance = one_each(
            mu,
            tau,
            tau**2 * (y + time * exp(mu)) + 1e-9,
            lambda eta: y - time * exp(eta),
            lambda eta: -time * exp(eta),
            lambda eta: y[:, None] * eta - time[:, None] * exp(eta),
        )
        height = total.sum(axis=1) - 0.5 * (u[:, 0] / 2) ** 2
        return height - 0.5 * (u[:, 1] + 0.5) ** 2, mean, variance

    return nested(
        _poisson_groups, _box(data), {"group": (count,)}, data, conditional, 45
    )


def _shares_groups(theta, data):
    linear = theta["mu"] + jnp.exp(theta["log_tau"]) * theta["group"]
    rows = data["y"] * linear - data["n"] * jax.nn.softplus(linear)
    return jnp.sum(rows) - 0.5 * jnp.sum(theta["group"] ** 2) + _hyper(theta, data)


def shares_groups(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Successes of groups whose logits differ, in units of their spread."""
    count = (6, 15, 25)[seed % 3]
    n, mu = rng.integers(2, 12, count), rng.normal(-0.5, 1)
    linear = mu + 10 ** rng.uniform(-0.7, 0.3) * rng.normal(size=count)
    y = rng.binomial(n, special.expit(linear))
    data = {"y": y, "n": n, "guess": 0.0, "guess_sd": 1.5, "log_tau": -0.5}

    def conditional(u):
        mu, tau = u[:, :1] + np.zeros(count), np.exp(u[:, 1:]) + np.zeros(count)
        total, mean, variance = successes_each(mu, tau, y, n)
        height = total.sum(axis=1) - 0.5 * (u[:, 0] / 1.5) ** 2
        height -= 0.5 * (u[:, 1] + 0.5) ** 2
        return height, (mean - mu) / tau, variance / tau**2

    return nested(
        _shares_groups, _box(data), {"group": (count,)}, data, conditional, 45
    )


def groups_given(y, sd, tau, guess, guess_sd):
    """Log density, means, variances of the location and the groups around it.

    Args:
        y: What was seen of each group.
        sd: Its error.
        tau: Spread of the groups, a column of values.
        guess: Prior mean of the location.
        guess_sd: Its prior standard deviation.

    Example:
        >>> alike = np.full(4, 2.0), 1.0, np.full((1, 1), 1e-6), 0.0, 1.0
        >>> groups_given(*alike)[1].round(3)[0, 0].item()
        1.6
    """
    total = np.broadcast_to(tau**2 + sd**2, (len(tau), y.size))
    precision = 1 / guess_sd**2 + np.sum(1 / total, axis=1)
    location = guess + np.sum((y - guess) / total, axis=1) / precision
    height = 0.5 * precision * (location - guess) ** 2 - 0.5 * np.log(precision)
    height -= 0.5 * np.sum((y - guess) ** 2 / total + np.log(total), axis=1)
    pull = sd**2 / total
    mean = (1 - pull) * y + pull * location[:, None]
    variance = tau**2 * pull + pull**2 / precision[:, None]
    spreads = np.column_stack([1 / precision, variance])
    return height, np.column_stack([location, mean]), spreads


def _meta_analysis(theta, data):
    z = (theta["study"] - theta["mu"]) * jnp.exp(-theta["log_tau"])
    rest = (data["y"] - theta["study"]) / data["sd"]
    rows = -0.5 * jnp.sum(z**2 + rest**2) - z.size * theta["log_tau"]
    # A half-Cauchy prior of the spread.
    spread = theta["log_tau"] - data["log_unit"]
    location = (theta["mu"] - data["guess"]) / data["guess_sd"]
    return rows + spread - jnp.log1p(jnp.exp(2 * spread)) - 0.5 * location**2


def meta_analysis(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Effects of three to eight trials with a half-Cauchy spread, centred."""
    count, unit = (3, 5, 8)[seed % 3], 10 ** rng.uniform(-1, 2)
    sd = unit * rng.uniform(0.3, 1.5, count)
    tau = unit * 10 ** rng.uniform(-1, 0.5)
    y = unit * rng.normal() + np.hypot(tau, sd) * rng.normal(size=count)
    log_unit = np.log(unit)
    data = {
        "y": y,
        "sd": sd,
        "log_unit": log_unit,
        "guess": 0.0,
        "guess_sd": 5 * unit,
    }

    def conditional(u):
        height, *rest = groups_given(y, sd, np.exp(u), 0.0, 5 * unit)
        spread = u[:, 0] - log_unit
        return height + spread - np.logaddexp(0, 2 * spread), *rest

    outer = {"log_tau": (log_unit - 40, log_unit + 15)}
    inner = {"mu": (), "study": (count,)}
    return nested(_meta_analysis, outer, inner, data, conditional, 3001)


def _one_way(theta, data):
    log_sd = theta["log_sd"]
    z = (theta["group"] - theta["mu"]) * jnp.exp(-theta["log_tau"])
    rest = (data["y"] - theta["group"][:, None]) * jnp.exp(-log_sd)
    rows = -0.5 * (jnp.sum(z**2) + jnp.sum(rest**2))
    rows -= z.size * theta["log_tau"] + rest.size * log_sd
    return rows + _hyper(theta, data) - 0.5 * (log_sd - data["log_sd"]) ** 2


def one_way(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Few repeats in each of several batches, both spreads unknown, far off zero."""
    count, repeats = ((5, 3), (10, 2), (25, 3))[seed % 3]
    unit = 10 ** rng.uniform(-4, 4)
    place = unit * rng.normal(0, 30)
    tau = unit * 10 ** rng.uniform(-0.6, 0.5)
    group = place + tau * rng.normal(size=count)
    y = group[:, None] + unit * rng.normal(size=(count, repeats))
    data = {
        "y": y,
        "guess": place + 2 * unit * rng.normal(),
        "guess_sd": 10 * unit,
        "log_tau": np.log(unit) - 0.3,
        "log_sd": np.log(unit) + 0.3,
    }
    means = y.mean(axis=1)
    within = np.sum((y - means[:, None]) ** 2)

    def conditional(u):
        tau, sd = np.exp(u.T)[:, :, None]
        # As if the place were zero, since squares lose digits far from it.
        given = means - place, sd / np.sqrt(repeats), tau, data["guess"] - place
        height, mean, variance = groups_given(*given, 10 * unit)
        height -= 0.5 * within / sd[:, 0] ** 2 + count * (repeats - 1) * u[:, 1]
        height -= 0.5 * (u[:, 0] - data["log_tau"]) ** 2
        height -= 0.5 * (u[:, 1] - data["log_sd"]) ** 2
        return height, place + mean, variance

    outer = {
        "log_tau": (data["log_tau"] - 7, data["log_tau"] + 6),
        "log_sd": (data["log_sd"] - 7, data["log_sd"] + 6),
    }
    inner = {"mu": (), "group": (count,)}
    return nested(_one_way, outer, inner, data, conditional, 121)


def _gamma_poisson(theta, data):
    shape, log_rate, x = jnp.exp(theta["log_shape"]), theta["log_rate"], theta["x"]
    prior = shape * log_rate - gammaln(shape) + (shape - 1) * jnp.log(x)
    rows = prior - jnp.exp(log_rate) * x + data["y"] * jnp.log(x) - data["time"] * x
    hyper = theta["log_shape"] ** 2 + (log_rate - data["guess"]) ** 2
    return jnp.sum(rows) - 0.5 * hyper


def gamma_poisson(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Failures of pumps with gamma rates, fitted on the log scale."""
    count = (6, 15, 40)[seed % 3]
    unit = 10 ** rng.uniform(-3, 3)
    time = 10 ** rng.uniform(-0.5, 1.3, count) / unit
    y = rng.poisson(time * unit * rng.gamma(rng.uniform(0.6, 4), 1.0, count))
    guess = -np.log(unit) + 0.5 * rng.normal()
    data = {"y": y, "time": time, "guess": guess}

    def conditional(u):
        shape, rate = np.exp(u.T)[:, :, None]
        rows = special.gammaln(shape + y) - special.gammaln(shape)
        rows += shape * u[:, 1:] - (shape + y) * np.log(rate + time)
        height = rows.sum(axis=1) - 0.5 * (u[:, 0] ** 2 + (u[:, 1] - guess) ** 2)
        mean = (shape + y) / (rate + time)
        return height, mean, mean / (rate + time)

    outer = {"log_shape": (-7.0, 7.0), "log_rate": (guess - 8, guess + 8)}
    space = UnconstrainedSpace({"x": positive()})
    return nested(_gamma_poisson, outer, {"x": (count,)}, data, conditional, 161, space)
