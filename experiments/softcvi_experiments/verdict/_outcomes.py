"""Outcomes that are counts, classes, shares and sums of unseen parts."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammainc, gammaln, log_ndtr, logsumexp
from scipy import special

from softcvi_experiments.verdict._lattice import latticed
from softcvi_experiments.verdict._posterior import RandomPosterior
from softcvi_experiments.verdict._priors import around
from softcvi_experiments.verdict._weighed import raw_design, weighed


def slopes(rng, size: int, sd: float = 0.6) -> np.ndarray:
    return rng.normal(0, sd, size)


def _current_status(theta, data):
    log_hazard = data["x"] @ theta["beta"]
    ill = jnp.log(-jnp.expm1(-jnp.exp(log_hazard)))
    rows = jnp.where(data["y"] > 0, ill, -jnp.exp(log_hazard))
    return jnp.sum(rows) + around(theta, beta=(0, data["prior_sd"]))


def current_status(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Who had an illness when asked: a complementary log-log link."""
    z, x, unit = raw_design(rng, 45, 4, 3.0)
    hazard = np.exp(z @ slopes(rng, 4) - 0.3)
    y = rng.uniform(size=45) < -np.expm1(-hazard)
    data = {"x": x, "y": y, "prior_sd": 2.5 * unit}
    return weighed(rng, _current_status, {"beta": (4,)}, data, {"beta": unit})


def _cauchit(theta, data):
    linear = data["x"] @ theta["beta"]
    chance = 0.5 + jnp.arctan(data["y"] * linear) / jnp.pi
    return jnp.sum(jnp.log(chance)) + around(theta, beta=(0, data["prior_sd"]))


def cauchit(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two classes with Cauchy tails of the link: slopes may be very steep."""
    z, x, unit = raw_design(rng, 30, 2, 3.0)
    y = np.sign(z @ rng.normal(0, 2, 2) + rng.standard_cauchy(30))
    data = {"x": x, "y": y, "prior_sd": 4 * unit}
    return latticed(_cauchit, {"beta": (-32 * unit, 32 * unit)}, data, 401)


def _mislabelled(theta, data):
    wrong = 0.5 * jax.nn.sigmoid(theta["wrong"])
    chance = jax.nn.sigmoid(data["y"] * (data["x"] @ theta["beta"]))
    rows = jnp.log(wrong + (1 - 2 * wrong) * chance)
    prior = around(theta, beta=(0, data["prior_sd"]), wrong=(-2, 1))
    return jnp.sum(rows) + prior


def mislabelled(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Classes of which an unknown share was written down wrongly."""
    z, x, unit = raw_design(rng, 90, 3, 3.0)
    y = np.sign(z @ rng.normal(0, 1.5, 3) + rng.logistic(size=90))
    y = np.where(rng.uniform(size=90) < 0.06, -y, y)
    data = {"x": x, "y": y, "prior_sd": 2.5 * unit}
    shapes = {"beta": (3,), "wrong": ()}
    middle = {"wrong": -2.0}
    return weighed(rng, _mislabelled, shapes, data, {"beta": unit}, middle)


def _kumaraswamy(theta, data):
    a, b, log_y = jnp.exp(theta["log_a"]), jnp.exp(theta["log_b"]), data["log_y"]
    rows = theta["log_a"] + theta["log_b"] + (a - 1) * log_y
    rows += (b - 1) * jnp.log(-jnp.expm1(a * log_y))
    return jnp.sum(rows) + around(theta, log_a=(0, 1.5), log_b=(0, 1.5))


def kumaraswamy(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """How full a reservoir was in eight years (Kumaraswamy)."""
    a, b = np.exp(rng.normal(0.5, 0.7, 2))
    y = (1 - rng.uniform(size=8) ** (1 / b)) ** (1 / a)
    box = {"log_a": (-8.0, 8.0), "log_b": (-8.0, 8.0)}
    return latticed(_kumaraswamy, box, {"log_y": np.log(y)}, 401)


def _conway_maxwell(theta, data):
    nu, log_rate = jnp.exp(theta["log_nu"]), data["x"] @ theta["beta"]
    k = data["k"]
    total = logsumexp(nu * (k * log_rate[:, None] - gammaln(k + 1)), axis=1)
    rows = nu * (data["y"] * log_rate - gammaln(data["y"] + 1)) - total
    prior = around(theta, beta=(0, data["prior_sd"]), log_nu=(0, 0.7))
    return jnp.sum(rows) + prior


def conway_maxwell(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Counts that vary less or more than Poisson ones (Conway and Maxwell)."""
    z, x, unit = raw_design(rng, 35, 2, 2.0)
    mean = np.exp(1.2 + 0.3 * z[:, 1])
    y = rng.binomial(12, mean / 12 / (1 + mean / 12))
    data = {"x": x, "y": y, "k": np.arange(25.0), "prior_sd": 2 * unit}
    shapes = {"beta": (2,), "log_nu": ()}
    return weighed(rng, _conway_maxwell, shapes, data, {"beta": unit})


def _generalised_poisson(theta, data):
    base, echo = jnp.exp(data["x"] @ theta["beta"]), jax.nn.sigmoid(theta["echo"])
    total = base + echo * data["y"]
    rows = jnp.log(base) + (data["y"] - 1) * jnp.log(total) - total
    prior = around(theta, beta=(0, data["prior_sd"]), echo=(-1, 1))
    return jnp.sum(rows) + prior


def generalised_poisson(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Counts of which each case may cause further ones (Consul)."""
    z, x, unit = raw_design(rng, 60, 4, 3.0)
    base, echo = np.exp(z @ slopes(rng, 4, 0.4)), rng.uniform(0.1, 0.6)
    y = first = rng.poisson(base)
    for _ in range(40):
        first = rng.poisson(echo * first)
        y = y + first
    data = {"x": x, "y": y, "prior_sd": 2.5 * unit}
    shapes = {"beta": (4,), "echo": ()}
    return weighed(rng, _generalised_poisson, shapes, data, {"beta": unit})


def _nights(theta, data):
    log_rate = data["x"] @ theta["beta"]
    rate = jnp.exp(log_rate)
    rows = data["y"] * log_rate - rate - jnp.log(-jnp.expm1(-rate))
    return jnp.sum(rows) + around(theta, beta=(0, data["prior_sd"]))


def nights(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Nights in hospital of those who stayed at all: Poisson without zero."""
    z, x, unit = raw_design(rng, 50, 6, 4.0)
    y = rng.poisson(np.exp(z @ slopes(rng, 6, 0.4)))
    y = np.where(y == 0, 1, y)
    data = {"x": x, "y": y, "prior_sd": 2.5 * unit}
    return weighed(rng, _nights, {"beta": (6,)}, data, {"beta": unit})


def _ten_or_more(theta, data):
    log_rate = data["x"] @ theta["beta"]
    rate = jnp.exp(log_rate)
    above = jnp.log(gammainc(10.0, rate))
    rows = jnp.where(data["y"] < 10, data["y"] * log_rate - rate, above)
    return jnp.sum(rows) + around(theta, beta=(0, data["prior_sd"]))


def ten_or_more(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Visits of which ten or more are one class."""
    z, x, unit = raw_design(rng, 20, 3, 3.0)
    y = np.minimum(rng.poisson(np.exp(1.9 + z @ slopes(rng, 3, 0.3))), 10)
    data = {"x": x, "y": y, "prior_sd": 2.5 * unit}
    return weighed(rng, _ten_or_more, {"beta": (3,)}, data, {"beta": unit})


def _goal_differences(theta, data):
    home, away, k = theta["log_home"], theta["log_away"], data["k"]
    one = jnp.maximum(data["y"], 0.0)[:, None] + k
    two = jnp.maximum(-data["y"], 0.0)[:, None] + k
    terms = one * home + two * away - gammaln(one + 1) - gammaln(two + 1)
    rows = logsumexp(terms, axis=1) - jnp.exp(home) - jnp.exp(away)
    return jnp.sum(rows) + around(theta, log_home=(0, 1), log_away=(0, 1))


def goal_differences(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Differences of goals: both rates from their difference (Skellam)."""
    y = rng.poisson(rng.uniform(1, 2.2), 14) - rng.poisson(rng.uniform(0.5, 1.6), 14)
    box = {"log_home": (-6.0, 4.0), "log_away": (-6.0, 4.0)}
    data = {"y": y, "k": np.arange(40.0)}
    return latticed(_goal_differences, box, data, 201)


def _goals(theta, data):
    k = data["k"]
    left = data["y"][:, :, None] - k
    inside = jnp.all(left >= 0, axis=1)
    safe = jnp.maximum(left, 0.0)
    terms = safe[:, 0] * theta["log_home"] + safe[:, 1] * theta["log_away"]
    terms += k * theta["log_shared"] - gammaln(k + 1)
    terms -= jnp.sum(gammaln(safe + 1), axis=1)
    rows = logsumexp(jnp.where(inside, terms, -jnp.inf), axis=1)
    names = ("log_home", "log_away", "log_shared")
    rows -= sum(jnp.exp(theta[name]) for name in names)
    return jnp.sum(rows) + around(theta, **dict.fromkeys(names, (0, 1)))


def goals(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Goals of both sides with a shared part (bivariate Poisson)."""
    shared = rng.poisson(rng.uniform(0.1, 0.6), (20, 1))
    y = rng.poisson(rng.uniform(0.6, 1.8, 2), (20, 2)) + shared
    shapes = dict.fromkeys(("log_home", "log_away", "log_shared"), ())
    return weighed(rng, _goals, shapes, {"y": y, "k": np.arange(8.0)}, {})


def _nominal_classes(theta, data):
    linear = jnp.pad(data["x"] @ theta["beta"], ((0, 0), (1, 0)))
    rows = jnp.sum(data["y"] * jax.nn.log_softmax(linear, axis=1))
    return rows + around(theta, beta=(0, data["prior_sd"]))


def nominal_classes(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Four parties without order, from two raw predictors."""
    z, x, unit = raw_design(rng, 70, 3, 4.0)
    heights = np.pad(z @ rng.normal(0, 0.8, (3, 3)), ((0, 0), (1, 0)))
    y = np.eye(4)[np.argmax(heights + rng.gumbel(size=heights.shape), axis=1)]
    data = {"x": x, "y": y, "prior_sd": 2 * unit[:, None]}
    shapes = {"beta": (3, 3)}
    return weighed(rng, _nominal_classes, shapes, data, {"beta": unit[:, None]})


def _stages(theta, data):
    linear = theta["stay"] - (data["x"] @ theta["beta"])[:, None]
    rows = data["stopped"] * jax.nn.log_sigmoid(linear)
    rows += data["passed"] * jax.nn.log_sigmoid(-linear)
    prior = around(theta, stay=(0, 2), beta=(0, data["prior_sd"]))
    return jnp.sum(rows) + prior


def stages(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Exams taken one after the other until one fails (continuation ratios)."""
    z, x, unit = raw_design(rng, 50, 3, 4.0)
    linear = rng.normal(-0.7, 0.5, 4) - (z @ slopes(rng, 3, 0.8))[:, None]
    fails = rng.uniform(size=linear.shape) < special.expit(linear)
    before = np.cumsum(fails, axis=1) - fails == 0
    data = {"x": x[:, 1:], "stopped": fails & before, "passed": ~fails & before}
    data["prior_sd"] = 1.5 * unit[1:]
    shapes = {"stay": (4,), "beta": (2,)}
    return weighed(rng, _stages, shapes, data, {"beta": unit[1:]})


def _pollen(theta, data):
    a, y = jnp.exp(theta["log_alpha"]), data["y"]
    rows = jnp.sum(gammaln(y + a) - gammaln(a), axis=1)
    rows += gammaln(a.sum()) - gammaln(a.sum() + y.sum(axis=1))
    return jnp.sum(rows) + around(theta, log_alpha=(0, 1.5))


def pollen(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Kinds of pollen in layers that differ (Dirichlet and multinomial)."""
    alpha = np.exp(rng.normal(0.3, 0.8, 5))
    y = np.stack([rng.multinomial(60, p) for p in rng.dirichlet(alpha, 9)])
    return weighed(rng, _pollen, {"log_alpha": (5,)}, {"y": y}, {})


def _response_times(theta, data):
    sd, tail = jnp.exp(theta["log_sd"]), jnp.exp(theta["log_tail"])
    rest = data["y"] - theta["place"]
    rows = 0.5 * (sd / tail) ** 2 - rest / tail - theta["log_tail"]
    rows += log_ndtr(rest / sd - sd / tail)
    unit, log_unit = data["unit"], jnp.log(data["unit"])
    prior = around(theta, place=(4 * unit, 3 * unit), log_sd=(log_unit - 0.7, 0.7))
    return jnp.sum(rows) + prior + around(theta, log_tail=(log_unit, 0.7))


def response_times(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Times to answer, in raw units: a normal and an exponential part."""
    unit = 10 ** rng.uniform(-1, 3)
    y = rng.normal(4, rng.uniform(0.3, 0.8), 40) + rng.exponential(1.0, 40)
    middle = {n: np.log(unit) for n in ("log_sd", "log_tail")} | {"place": 4 * unit}
    shapes = dict.fromkeys(("place", "log_sd", "log_tail"), ())
    data = {"y": unit * y, "unit": unit}
    return weighed(rng, _response_times, shapes, data, {"place": unit}, middle)


def _box_cox(theta, data):
    power, log_y = theta["power"], data["log_y"]
    small = jnp.abs(power) < 1e-3
    safe = jnp.where(small, 1e-3, power)
    curved = jnp.where(small, log_y, jnp.expm1(safe * log_y) / safe)
    rest = curved - data["x"] @ theta["beta"]
    rows = -0.5 * (rest * jnp.exp(-theta["log_sd"])) ** 2 - theta["log_sd"]
    rows += (power - 1) * log_y
    prior = around(theta, beta=(0, data["prior_sd"]), power=(0.5, 0.7))
    return jnp.sum(rows) + prior + around(theta, log_sd=(-1, 1))


def box_cox(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A regression on a power of the outcome that is unknown."""
    z, x, unit = raw_design(rng, 40, 3, 3.0)
    curved, power = z @ slopes(rng, 3, 0.3) + 0.3 * rng.normal(size=40), 0.4
    log_y = np.log(np.maximum(1 + power * curved, 0.05)) / power
    data = {"x": x, "log_y": log_y, "prior_sd": 3 * unit}
    shapes = {"beta": (3,), "power": (), "log_sd": ()}
    middle = {"power": 0.4, "log_sd": -1.0}
    return weighed(rng, _box_cox, shapes, data, {"beta": unit}, middle)


def _rain(theta, data):
    shape, n = jnp.exp(theta["log_shape"]), data["n"]
    y = jnp.where(data["y"] > 0, data["y"], 1.0)[:, None]
    log_z = jnp.log(y) - theta["log_scale"]
    terms = n * theta["log_rate"] - gammaln(n + 1) - gammaln(n * shape)
    terms += n * shape * log_z - jnp.exp(log_z) - jnp.log(y)
    wet = logsumexp(terms, axis=1)
    rows = jnp.where(data["y"] > 0, wet, 0.0) - jnp.exp(theta["log_rate"])
    prior = around(theta, log_rate=(0, 1), log_shape=(0, 0.7))
    return jnp.sum(rows) + prior + around(theta, log_scale=(data["log_unit"], 1))


def rain(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Rain of days with no shower or several: a sum of gammas (Tweedie)."""
    unit, showers = 10 ** rng.uniform(-2, 2), rng.poisson(rng.uniform(0.7, 1.8), 40)
    y = unit * np.where(showers > 0, rng.gamma(np.maximum(1.5 * showers, 0.1)), 0.0)
    data = {"y": y, "n": np.arange(1.0, 26.0), "log_unit": np.log(unit)}
    shapes = dict.fromkeys(("log_rate", "log_shape", "log_scale"), ())
    return weighed(rng, _rain, shapes, data, {}, {"log_scale": np.log(unit)})


def _unmixing(theta, data):
    mean = data["templates"] @ jnp.exp(theta["log_amount"])
    rows = data["y"] * jnp.log(mean) - mean
    return jnp.sum(rows) + around(theta, log_amount=(3, 1.5))


def unmixing(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Counts of a spectrum as a sum of known substances that overlap."""
    channel = np.linspace(0, 1, 25)[:, None]
    templates = np.exp(-0.5 * ((channel - np.linspace(0.2, 0.8, 4)) / 0.13) ** 2)
    templates = np.column_stack([templates, np.full(25, 0.2)])
    y = rng.poisson(templates @ np.exp(rng.normal(3, 0.8, 5)))
    data = {"templates": templates, "y": y}
    shapes, middle = {"log_amount": (5,)}, {"log_amount": 3.0}
    return weighed(rng, _unmixing, shapes, data, {}, middle)
