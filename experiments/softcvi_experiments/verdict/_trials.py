"""Regressions in raw units whose answers are by importance sampling or on a lattice."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, log_ndtr, logsumexp, ndtr
from scipy import stats

from softcvi_experiments.verdict._lattice import (
    in_double,
    latticed,
    nested,
)
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._weighed import normal_prior, raw_design, weighed

_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(25)


def _beta_shares(theta, data):
    size = jnp.exp(theta["log_size"])
    linear = data["x"] @ theta["beta"]
    a, b = size * jax.nn.sigmoid(linear), size * jax.nn.sigmoid(-linear)
    rows = gammaln(size) - gammaln(a) - gammaln(b)
    rows += (a - 1) * jnp.log(data["y"]) + (b - 1) * jnp.log1p(-data["y"])
    prior = normal_prior(theta["beta"], data["prior_sd"])
    return jnp.sum(rows) + prior - 0.5 * ((theta["log_size"] - 2) / 1.5) ** 2


def beta_shares(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Shares between 0 and 1 with a beta distribution of unknown size."""
    rows, size = ((25, 2), (60, 5))[seed % 2]
    z, x, unit = raw_design(rng, rows, size, 5.0)
    share = 1 / (1 + np.exp(-z @ rng.normal(0, 0.7, size)))
    strength = rng.uniform(3, 30)
    y = np.clip(rng.beta(strength * share, strength * (1 - share)), 1e-3, 1 - 1e-3)
    data = {"x": x, "y": y, "prior_sd": 3 * unit}
    shapes = {"beta": (size,), "log_size": ()}
    middle = {"log_size": 2.0}
    return weighed(rng, _beta_shares, shapes, data, {"beta": unit}, middle)


def _choice(theta, data):
    linear = data["x"] @ theta["beta"].T
    whole = jnp.concatenate([jnp.zeros_like(linear[:, :1]), linear], axis=1)
    rows = jnp.sum(data["y"] * jax.nn.log_softmax(whole, axis=1), axis=1)
    return jnp.sum(rows) + normal_prior(theta["beta"], data["prior_sd"])


def choice(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Choices among three or four goods."""
    rows, size, goods = ((60, 2, 3), (150, 3, 4))[seed % 2]
    z, x, unit = raw_design(rng, rows, size, 3.0)
    linear = np.column_stack(
        [np.zeros(rows), z @ rng.normal(0, 0.8, (size, goods - 1))]
    )
    y = np.eye(goods)[np.argmax(linear + rng.gumbel(size=linear.shape), axis=1)]
    data = {"x": x, "y": y, "prior_sd": 2.5 * unit}
    shapes = {"beta": (goods - 1, size)}
    return weighed(rng, _choice, shapes, data, {"beta": unit})


def _cuts(theta, data):
    gaps = jnp.exp(theta["log_gap"])
    inner = theta["first"] + jnp.concatenate([jnp.zeros(1), jnp.cumsum(gaps)])
    ends = jnp.full(1, jnp.inf, gaps.dtype)
    cuts = jnp.concatenate([-ends, inner, ends])
    level = data["level"].astype(int)
    linear = data["x"] @ theta["beta"]
    low, high = cuts[level] - linear, cuts[level + 1] - linear
    # Differences of small numbers, in whichever tail they are.
    right = low > 0
    share = ndtr(jnp.where(right, -low, high)) - ndtr(jnp.where(right, -high, low))
    prior = normal_prior(theta["beta"], data["prior_sd"]) - 0.125 * theta["first"] ** 2
    prior -= 0.5 * jnp.sum(theta["log_gap"] ** 2)
    return jnp.sum(jnp.log(share + 1e-12)) + prior


def cuts(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Four ordered answers with a probit link and unknown cut points."""
    rows, size = ((60, 2), (120, 4))[seed % 2]
    z = rng.normal(size=(rows, size))
    scale = 10 ** rng.uniform(-3, 3, size)
    latent = z @ rng.normal(0, 0.6, size) + rng.normal(size=rows)
    level = np.searchsorted(np.quantile(latent, [0.2, 0.5, 0.8]), latent)
    data = {"x": z * scale, "level": level, "prior_sd": 2 / scale}
    shapes = {"beta": (size,), "first": (), "log_gap": (2,)}
    unit, middle = {"beta": 1 / scale}, {"first": -1.0}
    return weighed(rng, _cuts, shapes, data, unit, middle)


def _hurdle(theta, data):
    some, count = data["x"] @ theta["any"], data["x"] @ theta["count"]
    seen = data["y"] > 0
    rate = jnp.exp(count)
    positive = data["y"] * count - rate - jnp.log(-jnp.expm1(-rate))
    rows = jax.nn.log_sigmoid(jnp.where(seen, some, -some)) + seen * positive
    prior = normal_prior(theta["any"], data["prior_sd"])
    return jnp.sum(rows) + prior + normal_prior(theta["count"], data["prior_sd"])


def hurdle(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Counts with one model for any at all and another for how many."""
    rows, size = ((50, 2), (120, 4))[seed % 2]
    z, x, unit = raw_design(rng, rows, size, 3.0)
    some = z @ np.append(rng.normal(), rng.normal(0, 0.6, size - 1))
    rate = np.exp(z @ np.append(rng.uniform(0.5, 2), rng.normal(0, 0.3, size - 1)))
    y = np.maximum(rng.poisson(rate), 1) * (rng.logistic(size=rows) < some)
    data = {"x": x, "y": y, "prior_sd": 2.5 * unit}
    shapes = {"any": (size,), "count": (size,)}
    return weighed(rng, _hurdle, shapes, data, {"any": unit, "count": unit})


def _tobit(theta, data):
    linear, log_sd = data["x"] @ theta["beta"], theta["log_sd"]
    z = (data["y"] - linear) * jnp.exp(-log_sd)
    rows = jnp.where(data["seen"] > 0, -0.5 * z**2 - log_sd, log_ndtr(z))
    offset = (theta["beta"] - data["prior_mean"]) / data["prior_sd"]
    hyper = log_sd - data["log_unit"]
    return jnp.sum(rows) - 0.5 * jnp.sum(offset**2) - 0.5 * hyper**2


def tobit(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Measurements below a limit known only to be there, far off the origin."""
    rows, size = ((30, 2), (80, 5))[seed % 2]
    z, x, coefficient = raw_design(rng, rows, size, 3.0)
    unit = 10 ** rng.uniform(-5, 5)
    place = np.append(unit * rng.normal(0, 100), np.zeros(size - 1))
    y = place[0] + unit * (z @ rng.normal(0, 1, size) + rng.normal(size=rows))
    limit = np.quantile(y, rng.uniform(0.2, 0.6))
    data = {
        "x": x,
        "y": np.maximum(y, limit),
        "seen": y > limit,
        "prior_mean": place,
        "prior_sd": 5 * unit * coefficient,
        "log_unit": np.log(unit),
    }
    shapes = {"beta": (size,), "log_sd": ()}
    middle = {"beta": place, "log_sd": np.log(unit)}
    return weighed(rng, _tobit, shapes, data, {"beta": unit * coefficient}, middle)


def _item_response(theta, data):
    # Abilities are summed over a normal by hand: rows are nodes, columns items.
    slope = jnp.exp(theta["log_slope"])
    linear = slope * (data["nodes"][:, None] - theta["item"])
    right, wrong = jax.nn.log_sigmoid(linear), jax.nn.log_sigmoid(-linear)
    people = data["y"] @ right.T + (1 - data["y"]) @ wrong.T
    rows = logsumexp(people + jnp.log(data["weights"]), axis=1)
    prior = -0.5 * jnp.sum((theta["item"] / 2) ** 2) - 2 * theta["log_slope"] ** 2
    return jnp.sum(rows) + prior


def item_response(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Difficulties of few items and their common slope; abilities are summed out."""
    people, items = ((30, 3), (60, 6))[seed % 2]
    ability, item = rng.normal(size=people), rng.normal(0, 1.2, items)
    y = rng.logistic(size=(people, items)) < 1.3 * (ability[:, None] - item)
    data = {"y": y, "nodes": _NODES, "weights": _NODE_WEIGHTS}
    shapes = {"item": (items,), "log_slope": ()}
    return weighed(rng, _item_response, shapes, data, {})


def _logistic(theta, data):
    linear = data["x"] @ theta["beta"]
    rows = data["y"] * linear - jax.nn.softplus(linear)
    return jnp.sum(rows) + normal_prior(data["mix"] @ theta["beta"], data["prior_sd"])


def collinear_logistic(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Logistic regression on two predictors that differ by one part in 1e3 to 3e4."""
    gap = 10 ** rng.uniform(-4.5, -3)
    z = rng.normal(size=(40, 2))
    x = np.stack([z[:, 0], z[:, 0] + gap * z[:, 1]], axis=1)
    y = rng.logistic(size=40) < z @ rng.normal(0, 1, 2)
    # The predictor is s z_0 + d z_1 with their sum s, and d a gap times the second.
    mix = np.array([[1.0, 1.0], [0.0, gap]])
    back = np.linalg.inv(mix)
    data = {"x": x, "y": y, "mix": mix, "prior_sd": np.full(2, 3.0)}
    heights = in_double(_logistic, {"beta": (2,)}, data)

    def conditional(u):
        beta = u @ back.T
        return heights(beta), beta, np.zeros_like(beta)

    # The lattice is over the mixed coordinates, which are no sites of the posterior.
    box = {"mixed": (np.full(2, -15.0), np.full(2, 15.0))}
    case = nested(_mixed, box, {"beta": (2,)}, {}, conditional, 301)
    target = density(_logistic, {"beta": (2,)}, data)
    right = {"beta": case.centre["beta"]}, {"beta": case.spread["beta"] ** 2}
    return from_moments(target, *right, "quadrature")


def _mixed(theta, data):
    return jnp.sum(theta["mixed"]) + jnp.sum(theta["beta"])


def _truncated_sample(theta, data):
    z = (data["y"] - theta["m"]) * jnp.exp(-theta["s"])
    rest = log_ndtr((theta["m"] - data["limit"]) * jnp.exp(-theta["s"]))
    rows = -0.5 * z**2 - theta["s"] - rest
    prior = ((theta["m"] - data["guess"]) / data["width"]) ** 2
    return jnp.sum(rows) - 0.5 * prior - 0.5 * (theta["s"] - data["log_unit"]) ** 2


def truncated_sample(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Normal data of which only those above a limit were written down."""
    unit = 10 ** rng.uniform(-2, 3)
    place = unit * rng.normal(0, 5)
    cut = rng.uniform(-0.5, 1.0)
    y = place + unit * stats.truncnorm.rvs(cut, np.inf, size=25, random_state=rng)
    data = {
        "y": y,
        "limit": place + unit * cut,
        "guess": place + unit * rng.normal(),
        "width": 3 * unit,
        "log_unit": np.log(unit) + 0.3 * rng.normal(),
    }
    middle = np.log(unit)
    box = {
        "m": (place - 30 * unit, place + 25 * unit),
        "s": (middle - 6, middle + 6),
    }
    return latticed(_truncated_sample, box, data, 401)


def _gompertz(theta, data):
    rate = jnp.exp(theta["rate"])
    level = theta["level"] + theta["effect"] * data["x"]
    total = jnp.exp(level) * jnp.expm1(rate * data["t"]) / rate
    rows = data["seen"] * (level + rate * data["t"]) - total
    prior = ((theta["level"] + 3) / 3) ** 2 + (theta["effect"] / 2) ** 2
    return jnp.sum(rows) - 0.5 * prior - 0.5 * (theta["rate"] + 1) ** 2


def gompertz(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Survival times with a hazard that grows exponentially, some censored."""
    x = rng.choice([0.0, 1.0], 30)
    rate, level = rng.uniform(0.15, 0.8), rng.uniform(-5, -2)
    whole = np.exp(level + rng.normal(0, 0.7) * x)
    t = np.log1p(rate * rng.exponential(size=30) / whole) / rate
    end = np.quantile(t, rng.uniform(0.5, 0.9))
    data = {"x": x, "t": np.minimum(t, end), "seen": t < end}
    box = {"rate": (-7.0, 3.0), "level": (-14.0, 6.0), "effect": (-9.0, 9.0)}
    return latticed(_gompertz, box, data, 91)
