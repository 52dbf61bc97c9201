"""Stars, charges, dates and pictures: what was seen of things out of reach."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from scipy import special

from softcvi_experiments.verdict._coordinates import normal
from softcvi_experiments.verdict._lattice import latticed, linear_given, nested
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._priors import around
from softcvi_experiments.verdict._transfer import chain_moments
from softcvi_experiments.verdict._weighed import weighed


def _misfit(data, mean):
    return -0.5 * jnp.sum(((data["y"] - mean) / data["sd"]) ** 2)


def _speed(turn, bend, library):
    """Speed of a star on an eccentric orbit, by Newton's rule for Kepler's equation."""
    one, other = bend
    round_ = library.sqrt(one**2 + other**2 + 1e-12)
    way = library.arctan2(other, one)
    phase = turn - way
    full = phase + round_ * library.sin(phase)
    for _ in range(8):
        miss = full - round_ * library.sin(full) - phase
        full = full - miss / (1 - round_ * library.cos(full))
    half = library.sqrt((1 + round_) / (1 - round_))
    true = 2 * library.arctan2(half * library.sin(full / 2), library.cos(full / 2))
    return library.cos(true + way) + one


def _eccentric(theta, data):
    one, other = theta["bend"]
    inside = one**2 + other**2 < 0.8
    safe = [jnp.where(inside, value, 0.1) for value in (one, other)]
    mean = theta["speed"] * _speed(data["turn"] - theta["phase"], safe, jnp)
    prior = around(theta, bend=(0, 0.3), phase=(0, 1), speed=(0, 3), base=(0, 3))
    return jnp.where(inside, _misfit(data, mean + theta["base"]) + prior, -jnp.inf)


def eccentric(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A star pulled on an orbit that is no circle, seen in few nights of some years."""
    count, sd = (5, 8, 20)[seed % 3], rng.uniform(0.3, 0.7)
    turn = np.sort(rng.uniform(0, 25, count))
    bend = rng.uniform(0.1, 0.5) * np.array([np.cos(sd * 9), np.sin(sd * 9)])
    y = rng.uniform(0.7, 3) * _speed(turn - rng.normal(0, 0.7), bend, np)
    y += rng.normal() + sd * rng.normal(size=count)

    def conditional(u):
        round_ = u[:, 0] ** 2 + u[:, 1] ** 2
        inside = round_ < 0.8
        safe = np.where(inside[:, None], u, [0.1, 0.1, 0.0])
        wave = _speed(turn - safe[:, 2:], (safe[:, :1], safe[:, 1:2]), np)
        design = np.stack([wave, np.ones_like(wave)], axis=2)
        height, *rest = linear_given(design, y, sd, 0, 3)
        height += normal(u, 0, [0.3, 0.3, 1])
        return np.where(inside, height, -np.inf), *rest

    far = np.full(2, 0.9)
    outer = {"bend": (-far, far), "phase": (-6.7, 6.7)}
    data = {"turn": turn, "y": y, "sd": sd}
    inner = {"speed": (), "base": ()}
    return nested(_eccentric, outer, inner, data, conditional, 71)


def _spinning(theta, data):
    disc = jnp.exp(theta["log_disc"]) * data["disc"]
    core = data["r"] * jnp.exp(-theta["log_core"])
    halo = jnp.exp(2 * theta["log_halo"]) * (1 - jnp.arctan(core) / core)
    prior = around(theta, log_disc=(0, 0.7), log_halo=(5, 0.5), log_core=(1, 1))
    return _misfit(data, jnp.sqrt(disc + halo)) + prior


def spinning_galaxy(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Speeds in a galaxy: heavy stars, or light ones and dark matter around them."""
    count, sd = (4, 8, 25)[seed % 3], rng.uniform(8, 25)
    r = np.sort(rng.uniform(0.5, 20, count))
    disc = 150.0**2 * 2.5 * (r / 3) * np.exp(-r / 4)
    core = r / np.exp(rng.normal(1, 0.6))
    square = np.exp(rng.normal(0, 0.4)) * disc
    square += np.exp(2 * rng.normal(5, 0.3)) * (1 - np.arctan(core) / core)
    y = np.sqrt(square) + sd * rng.normal(size=count)
    data = {"r": r, "disc": disc, "y": y, "sd": sd}
    box = {"log_disc": (-5.0, 4.7), "log_halo": (1.5, 8.5), "log_core": (-5.7, 7.7)}
    return latticed(_spinning, box, data, 81)


def _colours(x, library):
    """Light of a galaxy by the log of its colour: two steps and a line."""
    steps = 1 / (1 + library.exp(-(x - 0.2) / 0.04))
    steps = steps + 0.8 / (1 + library.exp(-(x + 0.9) / 0.04))
    return 0.2 + steps + 0.7 * library.exp(-(((x - 0.45) / 0.05) ** 2))


def _far_galaxy(theta, data):
    x = data["x"] - jnp.log1p(theta["shift"])[:, None]
    near = theta["shift"] > 0
    safe = jnp.where(near[:, None], x, 0.0)
    mean = jnp.exp(theta["light"])[:, None] * _colours(safe, jnp)
    prior = jnp.sum(2 * jnp.log(jnp.where(near, theta["shift"], 1.0)) - theta["shift"])
    prior += around(theta, light=(0, 0.7))
    return jnp.where(jnp.all(near), _misfit(data, mean) + prior, -jnp.inf)


def far_galaxy(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Distances of galaxies by few colours: near and red of themselves, or far away."""
    count, bands = ((1, 4), (3, 5), (6, 7))[seed % 3]
    x, sd = np.linspace(-0.5, 1.6, bands), rng.uniform(0.15, 0.4)
    shift, light = rng.gamma(3, 1, count), rng.normal(0, 0.5, count)
    y = np.exp(light)[:, None] * _colours(x - np.log1p(shift)[:, None], np)
    y += sd * rng.normal(size=y.shape)
    z, bright = np.linspace(0, 25, 5001)[1:], np.linspace(-5, 4, 301)
    shape = _colours(x - np.log1p(z)[:, None], np)
    power = np.exp(bright)
    firsts, seconds = [], []
    for row in y:
        fit = np.outer(shape @ row, power) / sd**2
        fit -= 0.5 * np.outer((shape**2).sum(axis=1), power**2) / sd**2
        fit += (2 * np.log(z) - z)[:, None] - 0.5 * (bright / 0.7) ** 2
        weights = special.softmax(fit)
        one, two = weights.sum(axis=1), weights.sum(axis=0)
        firsts.append([one @ z, two @ bright])
        seconds.append([one @ z**2, two @ bright**2])
    means = np.array(firsts)
    variances = np.array(seconds) - means**2
    shapes = {"shift": (count,), "light": (count,)}
    target = density(_far_galaxy, shapes, {"x": x, "y": y, "sd": sd})
    mean, variance = (
        {"shift": part[:, 0], "light": part[:, 1]} for part in (means, variances)
    )
    return from_moments(target, mean, variance, "quadrature")


def _faint_galaxies(theta, data):
    def log_count(x):
        return (theta["slope"] + 1) * (x - theta["knee"]) - jnp.exp(x - theta["knee"])

    grid, width = data["grid"], data["grid"][1] - data["grid"][0]
    heights = log_count(grid[:, None] + data["limit"])
    all_seen = logsumexp(heights, axis=0) + jnp.log(width)
    rows = log_count(data["x"]) - all_seen
    return jnp.sum(rows) + around(theta, slope=(-1, 0.7), knee=(0, 1))


def faint_galaxies(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Galaxies by their light; faint ones are not seen (Schechter, Malmquist)."""
    count = (4, 12, 60)[seed % 3]
    slope, knee = rng.uniform(-1.5, -0.5), rng.normal(0, 0.5)
    grid = np.linspace(0, 9, 181) + 0.025
    limit = rng.uniform(-4, -0.5, count)
    x = []
    for lowest in limit:
        fine = lowest + np.linspace(0, 9, 4001)
        logs = (slope + 1) * (fine - knee) - np.exp(fine - knee)
        x.append(rng.choice(fine, p=special.softmax(logs)))
    data = {"grid": grid, "limit": limit, "x": np.array(x)}
    box = {"slope": (-5.8, 3.8), "knee": (-7.0, 7.0)}
    return latticed(_faint_galaxies, box, data, 161)


def _droplets(theta, data):
    size = data["times"] * jnp.exp(theta["log_charge"])
    rest = (data["y"][:, None] - theta["zero"] - size) / data["sd"]
    rows = logsumexp(-0.5 * rest**2 + data["log_often"], axis=1)
    return jnp.sum(rows) + around(theta, log_charge=(0.5, 0.5), zero=(0, 0.3))


def droplets(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Charges of drops, each a whole number of one charge: that, or half of it."""
    count, sd = (3, 6, 15)[seed % 3], rng.uniform(0.15, 0.35)
    times = np.arange(1.0, 13)
    often = times * np.exp(-times / 2.5)
    charge, zero = rng.normal(0.5, 0.4), rng.normal(0, 0.2)
    drawn = rng.choice(times, count, p=often / often.sum())
    y = zero + drawn * np.exp(charge) + sd * rng.normal(size=count)
    data = {"y": y, "sd": sd, "times": times, "log_often": np.log(often)}
    box = {"log_charge": (-3.0, 4.0), "zero": (-2.2, 2.2)}
    return latticed(_droplets, box, data, 701)


def _beacon(theta, data):
    way = data["track"] - theta["where"]
    far = jnp.sqrt(jnp.sum(way**2, axis=1) + 1.0)
    shift = -jnp.sum(way * data["speed"], axis=1) / far
    prior = around(theta, where=(0, 5), pitch=(0, 3))
    return _misfit(data, theta["pitch"] + shift) + prior


def beacon(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A seal by the pitch of its beacon as a satellite goes by, left or right."""
    count, sd = (4, 7, 20)[seed % 3], rng.uniform(0.1, 0.4)
    t = np.linspace(-6, 6, count)
    track = np.stack([t, rng.uniform(0, 0.02) * t**2], axis=1)
    speed = np.stack([np.ones(count), 2 * track[:, 1] / np.where(t == 0, 1, t)], axis=1)
    data = {"track": track, "speed": speed, "sd": sd}

    def shift(u):
        way = track - u[:, None, :]
        return -np.sum(way * speed, axis=2) / np.sqrt(np.sum(way**2, axis=2) + 1)

    y = shift(rng.normal(0, 3, (1, 2)))[0] + rng.normal() + sd * rng.normal(size=count)

    def conditional(u):
        ones = np.ones((len(u), count, 1))
        height, *rest = linear_given(ones, y - shift(u), sd, 0, 3)
        return height + normal(u, 0, 5), *rest

    data["y"] = y
    outer = {"where": (np.full(2, -33.5), np.full(2, 33.5))}
    return nested(_beacon, outer, {"pitch": ()}, data, conditional, 401)


def _old_charcoal(theta, data):
    x = theta["years"]
    wiggle = 9 * jnp.sin(x / 17.0) + 12 * jnp.sin(x / 41.0 + 1) + 0.9 * x
    below = jnp.all(x[1:] > x[:-1])
    rows = -0.5 * jnp.sum(((data["y"] - data["base"] - wiggle) / data["sd"]) ** 2)
    prior = -0.5 * jnp.sum((x / 150.0) ** 2)
    return jnp.where(below, rows + prior, -jnp.inf)


def old_charcoal(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Dates of layers in their order, by a curve that goes up and down."""
    count, base = (1, 3, 8)[seed % 3], rng.uniform(500, 4000)
    years, sd = np.sort(rng.normal(0, 90, count)), rng.uniform(8, 20)
    x = np.linspace(-1000, 1000, 4001)

    def curve(x):
        return 9 * np.sin(x / 17.0) + 12 * np.sin(x / 41.0 + 1) + 0.9 * x

    y = base + curve(years) + sd * rng.normal(size=count)
    rows = -0.5 * ((y[:, None] - base - curve(x)) / sd) ** 2 - 0.5 * (x / 150) ** 2

    def older(now, before):
        with np.errstate(divide="ignore"):
            return np.log((now > before) + 0.5 * (now == before))

    used = np.flatnonzero((rows > rows.max(axis=1, keepdims=True) - 40).any(axis=0))
    part = slice(used[0], used[-1] + 1)
    _, mean, variance = chain_moments(x[part], rows[:, part], older)
    target = density(
        _old_charcoal, {"years": (count,)}, {"y": y, "sd": sd, "base": base}
    )
    return from_moments(target, {"years": mean}, {"years": variance}, "quadrature")


def _few_rays(theta, data):
    log_mean = data["log_bright"] - data["rays"] @ jnp.exp(theta["log_dense"])
    fit = jnp.sum(data["y"] * log_mean - jnp.exp(log_mean))
    return fit + around(theta, log_dense=(-1, 0.8))


def few_rays(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """How dense parts of a body are, by fewer rays through it than it has parts."""
    side, log_bright = ((2, 3.5), (2, 5.0), (3, 3.5))[seed % 3]
    cells = np.arange(side**2).reshape(side, side)
    through = [np.isin(np.arange(side**2), line) for line in [*cells, *cells.T]]
    rays = np.array(through, float)[: 2 * side - (seed % 2)]
    dense = np.exp(rng.normal(-1, 0.6, side**2))
    y = rng.poisson(np.exp(log_bright - rays @ dense))
    data = {"rays": rays, "y": y, "log_bright": log_bright}
    shapes, middle = {"log_dense": (side**2,)}, {"log_dense": -1.0}
    return weighed(rng, _few_rays, shapes, data, {}, middle)


def _sharpened(theta, data):
    bends = theta["x"][2:] - 2 * theta["x"][1:-1] + theta["x"][:-2]
    z = bends * jnp.exp(-theta["log_rough"])
    fit = _misfit(data, data["blur"] @ theta["x"]) - 0.5 * jnp.sum(z**2)
    fit -= z.size * theta["log_rough"]
    ends = 0.5 * (theta["x"][0] ** 2 + theta["x"][-1] ** 2) / data["wide"] ** 2
    return fit - ends + around(theta, log_rough=(jnp.log(data["wide"]) - 2, 1))


def sharpened(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A row of a picture before it was blurred, and how rough it was, from its blur."""
    size, unit = (6, 15, 40)[seed % 3], 10 ** rng.uniform(-2, 3)
    place = np.arange(size)
    blur = np.exp(-0.5 * ((place[:, None] - place) / rng.uniform(0.8, 2)) ** 2)
    blur /= blur.sum(axis=1, keepdims=True)
    x = unit * np.where((place > size / 3) & (place < 2 * size / 3), 1.5, -0.5)
    sd = unit * rng.uniform(0.03, 0.2)
    y = blur @ x + sd * rng.normal(size=size)
    wide, middle = 3 * unit, np.log(3 * unit) - 2
    bends = np.diff(np.eye(size), n=2, axis=0)
    inside = unit**2 * blur.T @ blur / sd**2
    inside[[0, -1], [0, -1]] += 1 / 9

    def conditional(u):
        rough = u[:, 0] - np.log(unit)
        precision = inside + np.exp(-2 * rough)[:, None, None] * (bends.T @ bends)
        covariance = np.linalg.inv(precision)
        shift = unit * blur.T @ y / sd**2
        mean = covariance @ shift
        height = 0.5 * mean @ shift - 0.5 * np.linalg.slogdet(precision)[1]
        height -= (size - 2) * u[:, 0] + 0.5 * (u[:, 0] - middle) ** 2
        variance = unit**2 * np.diagonal(covariance, axis1=1, axis2=2)
        return height, unit * mean, variance

    data = {"blur": blur, "y": y, "sd": sd, "wide": wide}
    outer = {"log_rough": (middle - 6.7, middle + 6.7)}
    return nested(_sharpened, outer, {"x": (size,)}, data, conditional, 401)


def _winds(theta, data):
    turn = theta["way"] + 2 * jnp.arctan(theta["slope"] * data["x"] / data["unit"])
    rows = data["sure"] * jnp.cos(data["y"] - turn)
    return jnp.sum(rows) + around(theta, way=(0, 1.5), slope=(0, 2))


def winds(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Directions of the wind that turn with the pressure, one way or the other."""
    count, unit = (3, 7, 25)[seed % 3], 10 ** rng.uniform(-2, 3)
    x, sure = rng.normal(0, 1, count), rng.uniform(1, 4)
    turn = rng.normal(0, 1) + 2 * np.arctan(rng.normal(0, 1.5) * x)
    y = rng.vonmises(turn, sure)
    data = {"x": unit * x, "y": y, "sure": sure, "unit": unit}
    box = {"way": (-10.0, 10.0), "slope": (-13.5, 13.5)}
    return latticed(_winds, box, data, 601)
