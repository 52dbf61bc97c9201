"""Animals counted, caught, grown and eaten: lattices and importance sampling."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from softcvi_experiments.verdict._lattice import latticed, linear_given, nested
from softcvi_experiments.verdict._posterior import RandomPosterior
from softcvi_experiments.verdict._weighed import normal_prior, weighed


def _removal(theta, data):
    extra, chance = jnp.exp(theta["log_left"]), jax.nn.sigmoid(theta["chance"])
    # Those never caught are a continuous number above zero.
    total = data["caught"] + extra
    rows = gammaln(total + 1) - gammaln(extra + 1) + data["caught"] * jnp.log(chance)
    tries = data["passes"] * total - data["later"]
    rows += (tries - data["caught"]) * jax.nn.log_sigmoid(-theta["chance"])
    prior = ((theta["log_left"] - data["guess"]) / 2) ** 2
    return rows - 0.5 * (prior + (theta["chance"] / 1.5) ** 2)


def removal(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Fish removed in three passes: many shy ones, or few left."""
    left, passes = (25, 120)[seed % 2], []
    for _ in range(3):
        passes.append(rng.binomial(left, rng.uniform(0.25, 0.45)))
        left -= passes[-1]
    caught = np.array(passes)
    # A fish caught in pass k was not there in the passes after it.
    later = np.sum(caught * np.arange(2, -1, -1))
    data = {"caught": caught.sum(), "later": later, "passes": 3.0}
    data["guess"] = np.log(caught.sum() + 1.0)
    box = {"log_left": (-10.0, 14.0), "chance": (-11.0, 9.0)}
    return latticed(_removal, box, data, 401)


def _distances(theta, data):
    scale = jnp.exp(theta["log_scale"])
    z = data["x"] / scale
    # The share seen of all within the strip.
    width = scale * jnp.sqrt(jnp.pi / 2) * jax.lax.erf(data["width"] / scale / 2**0.5)
    seen = jnp.exp(theta["log_density"]) * data["length"] * width
    rows = jnp.sum(theta["log_density"] - 0.5 * z**2) - seen
    prior = (theta["log_scale"] - data["guess"]) ** 2 + (theta["log_density"] / 3) ** 2
    return rows - 0.5 * prior


def distances(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Animals seen from a line, the less the further away."""
    width, scale = 10 ** rng.uniform(-1, 2), rng.uniform(0.3, 1.2)
    x = np.abs(scale * rng.normal(size=(12, 70)[seed % 2]))
    x = width * x[x < 1]
    length, middle = x.size / (width * rng.uniform(0.3, 3)), np.log(width) - 0.5
    data = {"x": x, "width": width, "length": length, "guess": middle}
    box = {"log_scale": (middle - 4, middle + 7), "log_density": (-7.0, 7.0)}
    return latticed(_distances, box, data, 401)


def _recruits(theta, data):
    rate, room = jnp.exp(theta["log_rate"]), jnp.exp(theta["log_room"])
    spawners = data["spawners"]
    mean = jnp.log(rate * spawners / (1 + rate * spawners / room))
    z = (data["log_y"] - mean) * jnp.exp(-theta["log_sd"])
    rows = -0.5 * z**2 - theta["log_sd"]
    prior = (theta["log_rate"] - 1) ** 2 + (
        (theta["log_room"] - data["guess"]) / 2
    ) ** 2
    return jnp.sum(rows) - 0.5 * prior - 0.5 * ((theta["log_sd"] + 1) / 0.5) ** 2


def recruits(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Recruits of a stock that may or may not have met its limit."""
    room, count = 10 ** rng.uniform(1, 5), (10, 30)[seed % 2]
    spawners = room * 10 ** rng.uniform(-1.5, rng.uniform(-1, 0.3), count)
    rate = np.exp(1 + 0.5 * rng.normal())
    y = rate * spawners / (1 + rate * spawners / room)
    log_y = np.log(y) + rng.uniform(0.2, 0.6) * rng.normal(size=count)
    middle = np.log(room)
    data = {"spawners": spawners, "log_y": log_y, "guess": middle + 0.5 * rng.normal()}
    box = {
        "log_rate": (-6.0, 8.0),
        "log_room": (middle - 6, middle + 14),
        "log_sd": (-3.5, 2.5),
    }
    return latticed(_recruits, box, data, 71)


def _islands(theta, data):
    curve = theta["base"] * (data["area"] / data["unit"]) ** theta["power"]
    z = (data["y"] - curve) * jnp.exp(-theta["log_sd"])
    prior = (theta["base"] / 100) ** 2 + ((theta["power"] - 0.3) / 0.3) ** 2
    rows = -0.5 * jnp.sum(z**2) - z.size * theta["log_sd"]
    return rows - 0.5 * prior - 0.5 * (theta["log_sd"] - 1.5) ** 2


def species_area(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Species on islands of very different size: a power of the area."""
    unit = 10 ** rng.uniform(-2, 3)
    area = unit * 10 ** rng.uniform(-1, 3, (6, 20)[seed % 2])
    y = rng.uniform(5, 20) * (area / unit) ** rng.uniform(0.15, 0.4)
    y += rng.uniform(2, 6) * rng.normal(size=area.size)
    data = {"area": area, "unit": unit, "y": y}

    def conditional(u):
        design = ((area / unit) ** u[:, :1])[:, :, None]
        height, *rest = linear_given(design, y, np.exp(u[:, 1]), 0.0, 100.0)
        height -= 0.5 * (((u[:, 0] - 0.3) / 0.3) ** 2 + (u[:, 1] - 1.5) ** 2)
        return height, *rest

    outer = {"power": (-1.9, 2.5), "log_sd": (-4.0, 7.5)}
    return nested(_islands, outer, {"base": ()}, data, conditional, 201)


def _turnover(theta, data):
    logs = {n: jax.nn.log_sigmoid(theta[n]) for n in _CHANCES}
    nots = {n: jax.nn.log_sigmoid(-theta[n]) for n in _CHANCES}
    seen = data["seen"]
    # Log chance of a year's visits, if the site is used and if it is not.
    used = seen * logs["seen"] + (data["visits"] - seen) * nots["seen"]
    empty = jnp.where(seen > 0, -1e4, 0.0)
    a, b = jnp.log(0.5) + used[:, 0], jnp.log(0.5) + empty[:, 0]
    for year in range(1, seen.shape[1]):
        stay = jnp.logaddexp(a + nots["leave"], b + logs["settle"])
        gone = jnp.logaddexp(a + logs["leave"], b + nots["settle"])
        a, b = stay + used[:, year], gone + empty[:, year]
    prior = sum((theta[n] / 1.5) ** 2 for n in _CHANCES)
    return jnp.sum(jnp.logaddexp(a, b)) - 0.5 * prior


_CHANCES = ("seen", "leave", "settle")


def turnover(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Sites that are settled and left between years, and overlooked on visits."""
    sites, years, visits = ((12, 3, 2), (40, 4, 3))[seed % 2]
    leave, settle, chance = rng.uniform([0.1, 0.1, 0.3], [0.5, 0.5, 0.8])
    state = rng.uniform(size=sites) < 0.5
    seen = []
    for _ in range(years):
        seen.append(rng.binomial(visits, chance * state))
        change = rng.uniform(size=sites)
        state = np.where(state, change > leave, change < settle)
    data = {"seen": np.array(seen).T, "visits": float(visits)}
    box = dict.fromkeys(_CHANCES, (-9.5, 9.5))
    return latticed(_turnover, box, data, 61)


def _lengths(theta, data):
    age = data["age"] - theta["born"]
    curve = theta["longest"] * -jnp.expm1(-jnp.exp(theta["log_rate"]) * age)
    z = (data["y"] - curve) / data["noise"]
    prior = ((theta["longest"] - data["guess"]) / data["wide"]) ** 2
    prior += ((theta["log_rate"] + 1) / 0.8) ** 2 + theta["born"] ** 2
    return -0.5 * (jnp.sum(z**2) + prior)


def lengths(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Growth of fish that were caught young, before they are as long as they get."""
    unit = 10 ** rng.uniform(-1, 3)
    age = rng.uniform(1, rng.uniform(3, 9), (10, 40)[seed % 2])
    noise, guess = 0.05 * unit, unit * rng.uniform(0.8, 1.3)
    y = -unit * np.expm1(-rng.uniform(0.2, 0.5) * (age + rng.uniform(0, 0.6)))
    y += noise * rng.normal(size=age.size)
    data = {"age": age, "y": y, "noise": noise, "guess": guess, "wide": unit}

    def conditional(u):
        grown = -np.expm1(-np.exp(u[:, :1]) * (age - u[:, 1:]))
        height, *rest = linear_given(grown[:, :, None], y, noise, guess, unit)
        height -= 0.5 * (((u[:, 0] + 1) / 0.8) ** 2 + u[:, 1] ** 2)
        # Negative lengths of a thousand fish: no digits are left, and no density.
        return np.where(grown.min(axis=1) < -1e3, -np.inf, height), *rest

    outer = {"log_rate": (-6.5, 3.5), "born": (-6.0, 5.0)}
    return nested(_lengths, outer, {"longest": ()}, data, conditional, 251)


def _eaten(theta, data):
    attack, handling = jnp.exp(theta["attack"]), jnp.exp(theta["handling"])
    linear = jnp.log(attack) - jnp.log1p(attack * handling * data["n"])
    rate = jnp.exp(linear)
    rows = data["y"] * jnp.log(-jnp.expm1(-rate)) - (data["n"] - data["y"]) * rate
    prior = theta["attack"] ** 2 + ((theta["handling"] - data["guess"]) / 2) ** 2
    return jnp.sum(rows) - 0.5 * prior


def eaten(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Prey eaten by a predator that needs time for each."""
    n = np.repeat([2.0, 5, 10, 20, 40, 80], (1, 4)[seed % 2])
    attack, handling = np.exp(0.5 * rng.normal()), 10 ** rng.uniform(-3, -0.7)
    rate = attack / (1 + attack * handling * n)
    data = {"n": n, "y": rng.binomial(n.astype(int), -np.expm1(-rate)), "guess": -3.5}
    box = {"attack": (-6.0, 6.5), "handling": (-17.0, 8.0)}
    return latticed(_eaten, box, data, 401)


def _pooled_tests(theta, data):
    linear = theta["level"] + data["x"] @ theta["beta"]
    none = data["pool"] * jax.nn.log_sigmoid(-linear)
    rows = jnp.where(data["y"] > 0, jnp.log(-jnp.expm1(none)), none)
    prior = normal_prior(theta["beta"], data["prior_sd"])
    return jnp.sum(rows) + prior - 0.5 * ((theta["level"] + 2) / 2) ** 2


def pooled_tests(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Ticks tested in pools of which only the presence of a disease is known."""
    rows, size = ((30, 1), (90, 3))[seed % 2]
    z = rng.normal(size=(rows, size))
    scale = 10 ** rng.uniform(-3, 3, size)
    pool = rng.integers(1, 12, rows)
    chance = 1 / (1 + np.exp(2.5 - z @ rng.normal(0, 0.6, size)))
    data = {"x": z * scale, "y": rng.binomial(1, 1 - (1 - chance) ** pool)}
    data |= {"pool": pool, "prior_sd": 2 / scale}
    shapes = {"level": (), "beta": (size,)}
    return weighed(
        rng, _pooled_tests, shapes, data, {"beta": 1 / scale}, {"level": -2.0}
    )
