"""Directions, photons, dependence and outbreaks with few data: lattices."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, log_ndtr
from scipy import special

from softcvi_experiments.verdict._lattice import latticed, linear_given, nested
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._weighed import normal_prior, weighed


def _parallax(theta, data):
    log_r = theta["log_distance"]
    z = (data["parallax"] - jnp.exp(-log_r)) / data["sd"]
    # Volume, an end of the galaxy, and the logarithm's own factor.
    return jnp.sum(3 * log_r - jnp.exp(log_r) / data["length"] - 0.5 * z**2)


def parallax(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Log distances of stars from noisy parallaxes: near, or anywhere far away."""
    count = (1, 6, 30)[seed % 3]
    length = rng.uniform(0.5, 2)
    distance = length * rng.gamma(3.0, 1.0, count)
    sd = rng.uniform(0.1, 0.6, count) / distance
    parallax = 1 / distance + sd * rng.normal(size=count)
    data = {"parallax": parallax, "sd": sd, "length": length}
    x = np.linspace(-7, 7, 14001)[:, None] + np.log(length)
    heights = 3 * x - np.exp(x) / length - 0.5 * ((parallax - np.exp(-x)) / sd) ** 2
    weights = special.softmax(heights, axis=0)
    mean = np.sum(weights * x, axis=0)
    variance = np.sum(weights * (x - mean) ** 2, axis=0)
    target = density(_parallax, {"log_distance": (count,)}, data)
    right = {"log_distance": mean}, {"log_distance": variance}
    return from_moments(target, *right, "quadrature")


def _on_off(theta, data):
    source, back = jnp.exp(theta["source"]), jnp.exp(theta["back"])
    on = data["on"] * jnp.log(source + back) - data["time"] * (source + back)
    off = data["off"] * theta["back"] - data["more"] * data["time"] * back
    prior = (theta["source"] / 2) ** 2 + ((theta["back"] - data["guess"]) / 2) ** 2
    return on + off - 0.5 * prior


def on_off(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Photons on and beside a weak source, which may be none."""
    time, more = rng.uniform(1, 5), rng.uniform(1, 8)
    back, source = 10 ** rng.uniform(-0.5, 1), rng.choice([0.0, 0.5, 4.0])
    data = {
        "on": rng.poisson(time * (source + back)),
        "off": rng.poisson(more * time * back),
        "time": time,
        "more": more,
        "guess": np.log(back),
    }
    box = {"source": (-14.0, 9.0), "back": (np.log(back) - 9, np.log(back) + 6)}
    return latticed(_on_off, box, data, 401)


def _broken_power(theta, data):
    linear = theta["level"] + jnp.where(
        data["x"] < theta["bend"],
        theta["low"] * (data["x"] - theta["bend"]),
        theta["high"] * (data["x"] - theta["bend"]),
    )
    prior = (theta["level"] / 5) ** 2 + (theta["low"] ** 2 + theta["high"] ** 2) / 4
    return -0.5 * (
        jnp.sum(((data["y"] - linear) / data["noise"]) ** 2)
        + prior
        + theta["bend"] ** 2
    )


def broken_power(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A spectrum of two slopes that meet somewhere, on log scales."""
    count, noise = (8, 20)[seed % 2], rng.uniform(0.1, 0.5)
    x, bend = np.sort(rng.uniform(-2, 2, count)), rng.uniform(-1, 1)
    low, high = rng.normal(0.5, 0.5), rng.normal(-1, 0.5)
    y = rng.normal() + np.where(x < bend, low, high) * (x - bend)
    y += noise * rng.normal(size=count)
    data = {"x": x, "y": y, "noise": noise}

    def conditional(u):
        rest = x - u[:, :1]
        parts = [np.ones_like(rest), np.minimum(rest, 0), np.maximum(rest, 0)]
        prior = 0.0, np.array([5.0, 2.0, 2.0])
        height, *found = linear_given(np.stack(parts, axis=2), y, noise, *prior)
        return height - 0.5 * u[:, 0] ** 2, *found

    inner = {"level": (), "low": (), "high": ()}
    return nested(_broken_power, {"bend": (-7.0, 7.0)}, inner, data, conditional, 2001)


def _lensing(theta, data):
    gap = (data["t"] - theta["when"]) * jnp.exp(-theta["log_time"])
    square = theta["near"] ** 2 + gap**2 + 1e-6
    rise = (square + 2) / jnp.sqrt(square * (square + 4))
    curve = theta["flux"][0] * rise + theta["flux"][1]
    prior = jnp.sum(((theta["flux"] - 1) / 2) ** 2) + (theta["near"] / 0.5) ** 2
    prior += (theta["when"] / 3) ** 2 + ((theta["log_time"] - 1) / 0.5) ** 2
    return -0.5 * (jnp.sum(((data["y"] - curve) / data["noise"]) ** 2) + prior)


def lensing(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A star that another one makes brighter as it passes, on either side."""
    t = np.sort(rng.uniform(-8, 8, (12, 30)[seed % 2]))
    square = rng.uniform(0.2, 0.6) ** 2 + ((t - rng.normal()) / 3) ** 2
    noise = rng.uniform(0.1, 0.3)
    y = (square + 2) / np.sqrt(square * (square + 4)) + rng.uniform(0, 1)
    y += noise * rng.normal(size=t.size)
    data = {"t": t, "y": y, "noise": noise}

    def conditional(u):
        when, log_time, near = u.T[:, :, None]
        square = near**2 + ((t - when) * np.exp(-log_time)) ** 2 + 1e-6
        rise = (square + 2) / np.sqrt(square * (square + 4))
        design = np.stack([rise, np.ones_like(rise)], axis=2)
        height, *rest = linear_given(design, y, noise, 1.0, 2.0)
        prior = (u / np.array([3.0, 0.5, 0.5]) - np.array([0.0, 2.0, 0.0])) ** 2
        return height - 0.5 * np.sum(prior, axis=1), *rest

    outer = {"when": (-12.0, 12.0), "log_time": (-2.0, 4.0), "near": (-3.3, 3.3)}
    return nested(_lensing, outer, {"flux": (2,)}, data, conditional, 45)


def _projected(theta, data):
    along = (
        jnp.cos(data["angle"]) * theta["x"][0] + jnp.sin(data["angle"]) * theta["x"][1]
    )
    height = -0.5 * jnp.sum(theta["x"] ** 2) * data["angle"].size
    # Normals seen as directions only: 1 + a Phi(a) / phi(a), for each direction.
    ratio = jnp.exp(log_ndtr(along) + 0.5 * along**2 + 0.5 * jnp.log(2 * jnp.pi))
    both = jnp.log1p(along * ratio)
    return height + jnp.sum(both) - 0.5 * jnp.sum((theta["x"] / 3) ** 2)


def flight_directions(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Directions of birds as normals in the plane without their length."""
    place = rng.normal(0, 0.8, 2)
    points = place + rng.normal(size=((5, 20)[seed % 2], 2))
    angle = np.arctan2(points[:, 1], points[:, 0])
    box = {"x": (np.full(2, -12.0), np.full(2, 12.0))}
    return latticed(_projected, box, {"angle": angle}, 301)


def _wrapped(theta, data):
    # A wrapped Cauchy with its direction as an angle without bounds.
    rho = jax.nn.sigmoid(theta["held"])
    turned = jnp.cos(data["angle"] - theta["way"])
    rows = jnp.log1p(-(rho**2)) - jnp.log1p(rho**2 - 2 * rho * turned)
    return jnp.sum(rows) - 0.5 * ((theta["way"] / 2) ** 2 + theta["held"] ** 2)


def wrapped_cauchy(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Angles around a direction that a full turn leaves the same."""
    angle = rng.normal() + np.arctan(rng.standard_cauchy((4, 12)[seed % 2])) * 1.2
    box = {"way": (-14.0, 14.0), "held": (-7.0, 7.0)}
    return latticed(_wrapped, box, {"angle": angle}, 401)


def _clayton(theta, data):
    rates, link = jnp.exp(theta["log_rate"]), jnp.exp(theta["log_link"])
    logs = jnp.log(-jnp.expm1(-data["y"] * rates))
    total = jnp.logaddexp(-link * logs[:, 0], -link * logs[:, 1])
    # x + y - 1 in terms of x and y, which are above one.
    total += jnp.log1p(-jnp.exp(-total) + 1e-9)
    rows = jnp.log1p(link) - (1 + link) * jnp.sum(logs, axis=1)
    rows -= (2 + 1 / link) * total
    rows += jnp.sum(theta["log_rate"] - data["y"] * rates, axis=1)
    prior = normal_prior(theta["log_rate"] - data["guess"], 1.0)
    return jnp.sum(rows) + prior - 0.5 * theta["log_link"] ** 2


def clayton(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two waiting times that are short together (a Clayton copula)."""
    count, link = (20, 80)[seed % 2], rng.uniform(0.5, 4)
    u, v = rng.uniform(size=(2, count))
    w = (1 + u**-link * (v ** (-link / (1 + link)) - 1)) ** (-1 / link)
    unit = 10 ** rng.uniform(-2, 2, 2)
    y = -np.log1p(-np.stack([u, w], axis=1)) * unit
    data = {"y": y, "guess": -np.log(unit)}
    middle = {"log_rate": -np.log(unit)}
    return weighed(rng, _clayton, {"log_rate": (2,), "log_link": ()}, data, {}, middle)


def _screening(theta, data):
    ill, hit, clear = (jax.nn.sigmoid(theta[n]) for n in ("ill", "hit", "clear"))
    positive = ill * hit + (1 - ill) * (1 - clear)
    rows = data["y"] * jnp.log(positive) + (data["n"] - data["y"]) * jnp.log1p(
        -positive
    )
    for name in ("hit", "clear"):
        right, wrong = data[name]
        rows += right * jax.nn.log_sigmoid(theta[name])
        rows += wrong * jax.nn.log_sigmoid(-theta[name])
    prior = ((theta["ill"] + 2) / 1.5) ** 2 + ((theta["hit"] - 1) / 1.5) ** 2
    return rows - 0.5 * (prior + ((theta["clear"] - 2) / 1.5) ** 2)


def screening(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """How many are ill, by a test that errs at rates known from few people."""
    n, ill = (40, 400)[seed % 2], rng.uniform(0.02, 0.3)
    hit, clear = rng.binomial(12, 0.8), rng.binomial(30, 0.95)
    y = rng.binomial(n, ill * 0.8 + (1 - ill) * 0.05)
    data = {"y": y, "n": n, "hit": np.array([hit, 12 - hit])}
    data["clear"] = np.array([clear, 30 - clear])
    box = {"ill": (-11.5, 7.0), "hit": (-7.0, 10.0), "clear": (-7.0, 11.0)}
    return latticed(_screening, box, data, 71)


def _secondary(theta, data):
    mean, size, y = theta["mean"], jnp.exp(theta["size"]), data["y"]
    total = jnp.logaddexp(mean, theta["size"])
    rows = gammaln(y + size) - gammaln(size) + y * (mean - total)
    rows += size * (theta["size"] - total)
    return jnp.sum(rows) - 0.5 * (mean**2 + (theta["size"] / 1.5) ** 2)


def secondary_cases(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Whom each patient infected: most nobody, a few many."""
    size = 10 ** rng.uniform(-0.9, 0.5)
    rate = rng.uniform(0.6, 2.5) * rng.gamma(size, 1 / size, (12, 60)[seed % 2])
    box = {"mean": (-7.0, 7.0), "size": (-9.0, 9.0)}
    return latticed(_secondary, box, {"y": rng.poisson(rate)}, 401)


def _households(theta, data):
    escape = jax.nn.log_sigmoid(-theta["home"])
    outside = jax.nn.log_sigmoid(-theta["outside"])
    # Households of three by the number of those infected, Reed and Frost's chains.
    q, b = jnp.exp(escape), jnp.exp(outside)
    none = b**3
    one = 3 * (1 - b) * b**2 * q**2
    two = 3 * (1 - b) ** 2 * b * q**2 + 6 * (1 - b) * b**2 * q**2 * (1 - q)
    all_three = 1 - none - one - two
    chances = jnp.stack([none, one, two, all_three])
    rows = data["counts"] @ jnp.log(jnp.maximum(chances, 1e-20))
    prior = (theta["home"] / 1.5) ** 2 + ((theta["outside"] + 1) / 1.5) ** 2
    return rows - 0.5 * prior


def households(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Infections in households of three, from outside and from one another."""
    q, b = rng.uniform(0.5, 0.9), rng.uniform(0.6, 0.9)
    none, one = b**3, 3 * (1 - b) * b**2 * q**2
    two = 3 * (1 - b) ** 2 * b * q**2 + 6 * (1 - b) * b**2 * q**2 * (1 - q)
    chances = [none, one, two, 1 - none - one - two]
    counts = rng.multinomial((10, 80)[seed % 2], chances)
    box = {"home": (-9.0, 9.0), "outside": (-10.0, 8.0)}
    return latticed(_households, box, {"counts": counts}, 401)
