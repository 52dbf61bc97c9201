"""Supports with edges, extremes and tails that are not normal: mostly closed forms."""

import jax.numpy as jnp
import numpy as np
from scipy import stats

from softcvi_experiments.verdict._lattice import latticed
from softcvi_experiments.verdict._posterior import (
    Quantiles,
    RandomPosterior,
    density,
    from_draws,
    from_moments,
)

_DRAWS = 200_000


def _covariance(rng, size: int) -> np.ndarray:
    noise = rng.normal(size=(size, 2 * size))
    return noise @ noise.T / (2 * size)


def _cut(theta, data):
    z = data["factor"] @ (theta["x"] - data["mean"])
    inside = data["way"] @ theta["x"] > data["border"]
    return jnp.where(inside, -0.5 * jnp.sum(z**2), -jnp.inf)


def cut_by_a_plane(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A correlated normal of which one side of a plane is impossible."""
    size = (1, 4, 12)[seed % 3]
    covariance, mean = _covariance(rng, size), rng.normal(0, 0.5, size)
    way = rng.normal(size=size)
    sd = np.sqrt(way @ covariance @ way)
    low = rng.uniform(-1, 1.2)
    # Only the part along the plane's normal is truncated.
    cut = stats.truncnorm(low, np.inf)
    link = covariance @ way / sd
    factor = np.linalg.cholesky(np.linalg.inv(covariance)).T
    data = {"factor": factor, "mean": mean, "way": way}
    data["border"] = way @ mean + sd * low
    variance = np.diag(covariance) + (cut.var() - 1) * link**2
    target = density(_cut, {"x": (size,)}, data)
    right = {"x": mean + cut.mean() * link}, {"x": variance}
    return from_moments(target, *right, "closed form")


def _corner(theta, data):
    x = theta["x"]
    rest = 1 - jnp.sum(x)
    inside = jnp.all(x > 0) & (rest > 0)
    whole = jnp.append(jnp.where(inside, x, 0.1), jnp.where(inside, rest, 0.1))
    return jnp.where(inside, jnp.sum((data["a"] - 1) * jnp.log(whole)), -jnp.inf)


def shares_of_whole(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """All shares but the last, above zero and below one together."""
    size = (1, 2, 4)[seed % 3]
    a = rng.uniform(1.2, 6, size + 1)
    total = a.sum()
    mean = a[:-1] / total
    variance = mean * (1 - mean) / (total + 1)
    target = density(_corner, {"x": (size,)}, {"a": a})
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def _in_order(theta, data):
    x = theta["x"]
    inside = (x[0] > data["low"]) & (x[-1] < data["high"]) & jnp.all(x[1:] > x[:-1])
    return jnp.where(
        inside,
        data["tilt"] * jnp.log(jnp.where(inside, x[0] - data["low"], 1.0)),
        -jnp.inf,
    )


def in_order(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Times of events in a period whose order is known."""
    size = (2, 3, 4)[seed % 3]
    low = -rng.uniform(0.5, 3)
    width = rng.uniform(3, 8)
    tilt = float(rng.integers(0, 3))
    # As uniforms in order of which the first ones were left out.
    a = np.arange(1, size + 1) + tilt
    b = size + 1 - np.arange(1, size + 1)
    exact = stats.beta(a, b, loc=low, scale=width)
    data = {"low": low, "high": low + width, "tilt": tilt}
    target = density(_in_order, {"x": (size,)}, data)
    return from_moments(target, {"x": exact.mean()}, {"x": exact.var()}, "closed form")


def _background(theta, data):
    x = theta["x"]
    inside = jnp.all(jnp.abs(x - data["centre"]) < data["half"])
    flat = jnp.where(inside, jnp.log(data["share"]), -1e4)
    flat -= x.size * jnp.log(2 * data["half"])
    z = (x - data["peak"]) / data["width"]
    peak = -0.5 * jnp.sum(z**2) - x.size * (
        jnp.log(data["width"]) + 0.5 * jnp.log(2 * jnp.pi)
    )
    return jnp.logaddexp(flat, peak + jnp.log1p(-data["share"]))


def background(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A normal peak on a flat background within a box."""
    size = (1, 2, 4)[seed % 3]
    half, width = rng.uniform(3, 8), rng.uniform(0.3, 1)
    centre = rng.normal(0, 1, size)
    peak = centre + half * rng.uniform(-0.6, 0.6, size)
    share = rng.uniform(0.2, 0.8)
    data = {
        "half": half,
        "width": width,
        "centre": centre,
        "peak": peak,
        "share": share,
    }
    mean = share * centre + (1 - share) * peak
    second = share * (half**2 / 3 + centre**2) + (1 - share) * (width**2 + peak**2)
    target = density(_background, {"x": (size,)}, data)
    return from_moments(target, {"x": mean}, {"x": second - mean**2}, "closed form")


def _maxima(theta, data):
    scale, shape = jnp.exp(theta["log_scale"]), theta["shape"]
    z = (data["y"] - theta["place"]) / scale
    small = jnp.abs(shape) < 1e-4
    safe = jnp.where(small, 1e-4, shape)
    inner = 1 + safe * z
    inside = jnp.all(inner > 0)
    power = jnp.where(small, z, jnp.log(jnp.where(inner > 0, inner, 1.0)) / safe)
    rows = -theta["log_scale"] - (1 + shape) * power - jnp.exp(-power)
    prior = ((theta["place"] - data["guess"]) / data["wide"]) ** 2
    prior += (theta["log_scale"] - data["log_unit"]) ** 2 + (shape / 0.3) ** 2
    return jnp.where(inside, jnp.sum(rows) - 0.5 * prior, -jnp.inf)


def yearly_maxima(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Highest floods of years: place, scale and shape, which may end the support."""
    count, unit = (10, 40)[seed % 2], 10 ** rng.uniform(-1, 3)
    place = unit * rng.uniform(0, 3)
    y = place + unit * stats.genextreme.rvs(
        -rng.uniform(-0.3, 0.4), size=count, random_state=rng
    )
    middle = np.log(unit)
    data = {"y": y, "guess": place, "wide": 4 * unit, "log_unit": middle}
    box = {
        "place": (place - 6 * unit, place + 6 * unit),
        "log_scale": (middle - 3.0, middle + 3.0),
        "shape": (-1.5, 1.9),
    }
    return latticed(_maxima, box, data, 81)


def _exceedances(theta, data):
    log_scale, shape = theta["log_scale"], theta["shape"]
    z = data["y"] * jnp.exp(-log_scale)
    small = jnp.abs(shape) < 1e-4
    safe = jnp.where(small, 1e-4, shape)
    inner = 1 + safe * z
    inside = jnp.all(inner > 0)
    power = jnp.where(small, z, jnp.log(jnp.where(inner > 0, inner, 1.0)) / safe)
    prior = (log_scale - data["log_unit"]) ** 2 + (shape / 0.4) ** 2
    rows = -log_scale - (1 + shape) * power
    return jnp.where(inside, jnp.sum(rows) - 0.5 * prior, -jnp.inf)


def exceedances(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Losses above a limit, generalised Pareto, perhaps with a largest loss."""
    unit = 10 ** rng.uniform(-2, 4)
    shape = rng.uniform(-0.4, 0.6)
    y = unit * stats.genpareto.rvs(shape, size=(8, 40)[seed % 2], random_state=rng)
    middle = np.log(unit)
    data = {"y": y, "log_unit": middle + 0.5 * rng.normal()}
    box = {"log_scale": (middle - 5.0, middle + 5.0), "shape": (-2.4, 2.7)}
    return latticed(_exceedances, box, data, 801)


def _smallest(theta, data):
    limit, log_power = theta["limit"], theta["log_power"]
    inside = limit < data["log_first"]
    power = jnp.exp(log_power)
    rows = data["count"] * (log_power + power * limit) - power * data["log_total"]
    prior = ((limit - data["guess"]) / data["wide"]) ** 2 + (log_power - 0.3) ** 2
    return jnp.where(inside, rows - 0.5 * prior, -jnp.inf)


def smallest_mass(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A power law of masses above an unknown smallest one."""
    count, power = (4, 20)[seed % 2], rng.uniform(0.7, 2.5)
    log_y = rng.normal(0, 1) + rng.exponential(1 / power, count)
    data = {
        "count": float(count),
        "log_first": log_y.min(),
        "log_total": log_y.sum(),
        "guess": 0.0,
        "wide": 2.0,
    }
    # The upper corner is the edge, where the density is highest: middles of cells.
    edge = log_y.min()
    limit = edge - (np.arange(4000) + 0.5) * 14 / 4000
    level = np.linspace(-6, 6, 401)
    one, two = np.meshgrid(limit, level, indexing="ij")
    heights = count * (two + np.exp(two) * one) - np.exp(two) * log_y.sum()
    heights -= 0.5 * ((one / 2) ** 2 + (two - 0.3) ** 2)
    weights = np.exp(heights - heights.max())
    weights /= weights.sum()
    mean, variance = {}, {}
    for name, values in (("limit", one), ("log_power", two)):
        mean[name] = np.sum(weights * values)
        variance[name] = np.sum(weights * (values - mean[name]) ** 2)
    target = density(_smallest, {"limit": (), "log_power": ()}, data)
    return from_moments(target, mean, variance, "quadrature")


def _cusp(theta, data):
    z = data["factor"] @ (theta["x"] - data["mean"])
    return -jnp.sqrt(jnp.sum(z**2) + 1e-12)


def cusp(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Exponential in the distance from a place, with correlations: a cusp."""
    size = (2, 8, 30)[seed % 3]
    unit = 10 ** rng.uniform(-3, 3, size)
    covariance = _covariance(rng, size) * np.outer(unit, unit)
    mean = unit * rng.normal(0, 10, size)
    inverse = np.linalg.inv(covariance / np.outer(unit, unit))
    factor = np.linalg.cholesky(inverse).T / unit
    target = density(_cusp, {"x": (size,)}, {"mean": mean, "factor": factor})
    # The distance is a gamma variable with as many degrees as axes.
    variance = (size + 1) * np.diag(covariance)
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def _turned_laplace(theta, data):
    return -jnp.sum(jnp.abs(data["back"] @ (theta["x"] - data["mean"])))


def turned_laplace(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Sums of independent Laplace variables: kinks that are no axes."""
    size = (2, 10, 50)[seed % 3]
    mix = np.eye(size) + 0.8 * rng.normal(size=(size, size)) / np.sqrt(size)
    unit = 10 ** rng.uniform(-2, 2, size)
    mean = unit * rng.normal(0, 10, size)
    back = np.linalg.inv(mix) / unit
    target = density(_turned_laplace, {"x": (size,)}, {"mean": mean, "back": back})
    variance = unit**2 * np.sum(2 * mix**2, axis=1)
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def _torus(theta, data):
    x = (theta["x"] - data["middle"]) / data["unit"]
    radius = jnp.sqrt(x[0] ** 2 + x[1] ** 2 + 1e-12)
    rest = ((radius - data["radius"]) ** 2 + jnp.sum(x[2:] ** 2)) / data["width"] ** 2
    return -0.5 * rest + data["lean"] * x[0]


def torus(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A ring with a thickness, heavier on one side, with further axes."""
    size = (2, 3, 8)[seed % 3]
    radius, width = rng.uniform(3, 8), rng.uniform(0.3, 1)
    lean = rng.uniform(0, 1.0) / radius
    unit = 10 ** rng.uniform(-2, 2)
    middle = unit * rng.normal(0, 3, size)
    r = np.linspace(0, 30, 3001)[1:, None]
    turn = np.linspace(0, 2 * np.pi, 361)[:-1]
    heights = np.log(r) - 0.5 * ((r - radius) / width) ** 2 + lean * r * np.cos(turn)
    weights = np.exp(heights - heights.max())
    weights /= weights.sum()
    mean, second = np.zeros(size), np.full(size, width**2)
    for axis, values in enumerate((r * np.cos(turn), r * np.sin(turn))):
        mean[axis] = np.sum(weights * values)
        second[axis] = np.sum(weights * values**2)
    data = {"radius": radius, "width": width, "lean": lean, "unit": unit}
    target = density(_torus, {"x": (size,)}, data | {"middle": middle})
    right = {"x": middle + unit * mean}, {"x": unit**2 * (second - mean**2)}
    return from_moments(target, *right, "quadrature")


def _long_memory(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    rest = z[1:] - data["echo"] * z[:-1]
    return -0.5 * (jnp.sum(rest**2) / (1 - data["echo"] ** 2) + z[0] ** 2)


def smooth_path(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A stationary path of up to two hundred normals, each all but the one before."""
    size = (10, 80, 200)[seed % 3]
    unit, shift = 10 ** rng.uniform(-1, 1, size), rng.normal(0, 5, size)
    data = {"echo": 1 - 10 ** -rng.uniform(1.5, 3), "unit": unit, "shift": shift}
    target = density(_long_memory, {"x": (size,)}, data)
    right = {"x": shift}, {"x": unit**2}
    return from_moments(target, *right, "closed form")


def _log_pareto(theta, data):
    z = jnp.abs(theta["x"] - data["shift"]) / data["unit"]
    return -jnp.sum((data["power"] + 1) * jnp.log1p(z))


def two_sided_pareto(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Pareto tails on both sides of a cusp, 2.5 to 5 moments."""
    size = (1, 4, 15)[seed % 3]
    power, unit = rng.uniform(2.5, 5, size), 10 ** rng.uniform(-2, 2, size)
    shift = unit * rng.normal(0, 5, size)
    sign = rng.choice([-1.0, 1.0], (_DRAWS, size))
    draws = shift + unit * sign * rng.pareto(power, (_DRAWS, size))
    data = {"power": power, "unit": unit, "shift": shift}
    target = density(_log_pareto, {"x": (size,)}, data)
    return from_draws(target, {"x": draws}, Quantiles())
