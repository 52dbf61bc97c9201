"""Where something is, by signals from afar: mirror images, rings and ridges."""

import jax
import jax.numpy as jnp
import numpy as np

from softcvi_experiments.verdict._lattice import latticed, linear_given, nested
from softcvi_experiments.verdict._posterior import RandomPosterior
from softcvi_experiments.verdict._priors import around


def _misfit(data, mean):
    return -0.5 * jnp.sum(((data["y"] - mean) / data["sd"]) ** 2)


def _normal(u, mean, sd):
    return -0.5 * np.sum(((u - mean) / sd) ** 2, axis=1)


def _quake(theta, data):
    where = theta["where"] / data["unit"]
    way = jnp.sqrt((data["x"] - where[0]) ** 2 + where[1] ** 2 + 1e-12)
    prior = around(theta, where=(0, 3 * data["unit"]), when=(0, 10))
    return _misfit(data, theta["when"] + way) + prior


def quake(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """An earthquake by arrivals along a road: above the ground it fits as well."""
    count, unit = (3, 5, 12)[seed % 3], 10 ** rng.uniform(-2, 2)
    x, where = rng.normal(0, 2, count), rng.normal([0, 2.5], [2, 0.7])
    sd = rng.uniform(0.1, 0.4)
    y = (
        rng.normal(0, 5)
        + np.hypot(x - where[0], where[1])
        + sd * rng.normal(size=count)
    )
    data = {"x": x, "y": y, "sd": sd, "unit": unit}

    def conditional(u):
        way = np.sqrt((x - u[:, :1] / unit) ** 2 + (u[:, 1:] / unit) ** 2)
        precision = count / sd**2 + 0.01
        mean = np.sum(y - way, axis=1) / sd**2 / precision
        height = 0.5 * precision * mean**2 - 0.5 * np.sum((y - way) ** 2, 1) / sd**2
        height += _normal(u, 0, 3 * unit)
        return height, mean[:, None], np.full((len(u), 1), 1 / precision)

    corner = np.full(2, 20 * unit)
    return nested(
        _quake, {"where": (-corner, corner)}, {"when": ()}, data, conditional, 401
    )


def _loudness(theta, data):
    square = jnp.sum((data["x"] - theta["where"]) ** 2, axis=1) + 0.01
    prior = around(theta, where=(0, 4), loud=(0, 3))
    return _misfit(data, theta["loud"] - jnp.log(square)) + prior


def loudness(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A source of unknown strength, by how loud it is at a few places in a row."""
    count = (2, 3, 6)[seed % 3]
    x = np.stack([rng.normal(0, 2, count), rng.normal(0, 0.2, count)], axis=1)
    square = np.sum((x - rng.normal(0, 3, 2)) ** 2, axis=1) + 0.01
    sd = rng.uniform(0.3, 0.7)
    y = rng.normal() - np.log(square) + sd * rng.normal(size=count)

    def conditional(u):
        rest = y + np.log(np.sum((x - u[:, None]) ** 2, axis=2) + 0.01)
        precision = count / sd**2 + 1 / 9
        mean = rest.sum(axis=1) / sd**2 / precision
        height = 0.5 * precision * mean**2 - 0.5 * np.sum(rest**2, axis=1) / sd**2
        height += _normal(u, 0, 4)
        return height, mean[:, None], np.full((len(u), 1), 1 / precision)

    outer = {"where": (np.full(2, -27.0), np.full(2, 27.0))}
    data = {"x": x, "y": y, "sd": sd}
    return nested(_loudness, outer, {"loud": ()}, data, conditional, 601)


def _bearings(theta, data):
    way = theta["where"] - data["x"]
    turn = jnp.arctan2(way[:, 1], way[:, 0])
    return data["sure"] * jnp.sum(jnp.cos(turn - data["y"])) + around(
        theta, where=(0, 5)
    )


def bearings(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A transmitter by its directions from stations, rough and nearly parallel."""
    count, sure = (2, 3, 6)[seed % 3], rng.uniform(8, 40)
    x, where = rng.normal(0, 1.5, (count, 2)), rng.normal(0, 4, 2)
    way = where - x
    y = np.arctan2(way[:, 1], way[:, 0]) + rng.vonmises(0, sure, count)
    box = {"where": (np.full(2, -34.0), np.full(2, 34.0))}
    return latticed(_bearings, box, {"x": x, "y": y, "sure": sure}, 801)


def _delays(theta, data):
    way = jnp.sqrt(jnp.sum((data["x"] - theta["where"]) ** 2, axis=1) + 1e-9)
    return _misfit(data, way[1:] - way[0]) + around(theta, where=(0, 4))


def delays(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A bird by the delays of its song between microphones: branches of hyperbolas."""
    count, sd = (2, 3, 5)[seed % 3], rng.uniform(0.15, 0.4)
    x = rng.normal(0, 1.5, (count, 2))
    way = np.linalg.norm(x - rng.normal(0, 3, 2), axis=1)
    y = way[1:] - way[0] + sd * rng.normal(size=count - 1)
    box = {"where": (np.full(2, -27.0), np.full(2, 27.0))}
    return latticed(_delays, box, {"x": x, "y": y, "sd": sd}, 601)


def _lamps(theta, data):
    light = jnp.exp(-0.5 * (data["x"][:, None] - theta["where"]) ** 2)
    prior = around(theta, where=(0, 2), power=(1, 1))
    return _misfit(data, light @ theta["power"]) + prior


def lamps(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two lamps behind a curtain that are alike but for their places and powers."""
    count, sd = (5, 8, 16)[seed % 3], rng.uniform(0.2, 0.4)
    x, where = np.linspace(-4, 4, count), rng.normal(0, 1.8, 2)
    y = np.exp(-0.5 * (x[:, None] - where) ** 2) @ rng.uniform(0.5, 2, 2)
    y += sd * rng.normal(size=count)
    data = {"x": x, "y": y, "sd": sd}

    def conditional(u):
        light = np.exp(-0.5 * (x[:, None] - u[:, None, :]) ** 2)
        height, *rest = linear_given(light, y, sd, 1, 1)
        return height + _normal(u, 0, 2), *rest

    outer = {"where": (np.full(2, -13.5), np.full(2, 13.5))}
    return nested(_lamps, outer, {"power": (2,)}, data, conditional, 201)


def _buried(theta, data):
    depth = jnp.exp(theta["log_depth"])
    pull = 1 / (1 + ((data["x"] - theta["where"]) / depth) ** 2) ** 1.5
    mean = theta["mass"] * pull + theta["base"]
    prior = around(theta, where=(0, 2), log_depth=(0, 0.7), mass=(0, 3), base=(0, 3))
    return _misfit(data, mean) + prior


def buried(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Ore or a cave below a line of weights: where, how deep, how much, over what."""
    count, sd = (5, 9, 25)[seed % 3], rng.uniform(0.2, 0.5)
    x, where, depth = np.linspace(-4, 4, count), rng.normal(0, 1.5), rng.uniform(0.5, 2)
    pull = 1 / (1 + ((x - where) / depth) ** 2) ** 1.5
    y = rng.choice([-1, 1]) * rng.uniform(1, 3) * pull + rng.normal()
    data = {"x": x, "y": y + sd * rng.normal(size=count), "sd": sd}

    def conditional(u):
        pull = 1 / (1 + ((x - u[:, :1]) / np.exp(u[:, 1:])) ** 2) ** 1.5
        design = np.stack([pull, np.ones_like(pull)], axis=2)
        height, *rest = linear_given(design, data["y"], sd, 0, 3)
        return height + _normal(u, [0, 0], [2, 0.7]), *rest

    outer = {"where": (-13.5, 13.5), "log_depth": (-4.8, 4.8)}
    return nested(_buried, outer, {"mass": (), "base": ()}, data, conditional, 201)


def _creep(theta, data):
    z = (data["x"] - theta["where"] * data["unit"]) / data["unit"]
    mean = theta["slip"] * jnp.arctan(z * jnp.exp(-theta["log_depth"])) + theta["base"]
    prior = around(theta, where=(0, 1.5), log_depth=(0, 1))
    wide = data["wide"]
    return _misfit(data, mean) + prior + around(theta, slip=(0, wide), base=(0, wide))


def creep(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Ground that creeps along a fault that is locked down to an unknown depth."""
    count, unit = (8, 12, 25)[seed % 3], 10 ** rng.uniform(-2, 4)
    x, speed = np.sort(rng.normal(0, 2, count)), 10 ** rng.uniform(-2, 2)
    y = rng.normal() + rng.normal(0, 1.5) * np.arctan((x - rng.normal()) / 1.2)
    sd = speed * rng.uniform(0.15, 0.4)
    y = speed * y + sd * rng.normal(size=count)
    data = {"x": unit * x, "y": y, "sd": sd, "unit": unit, "wide": 3 * speed}

    def conditional(u):
        bend = np.arctan((x - u[:, :1]) * np.exp(-u[:, 1:]))
        design = np.stack([bend, np.ones_like(bend)], axis=2)
        height, *rest = linear_given(design, y, sd, 0, 3 * speed)
        return height + _normal(u, [0, 0], [1.5, 1]), *rest

    outer = {"where": (-10.0, 10.0), "log_depth": (-6.7, 6.7)}
    return nested(_creep, outer, {"slip": (), "base": ()}, data, conditional, 161)


def _field(theta, data):
    size = data["y"].size
    kernel = jnp.exp(-data["gap"] * jnp.exp(-theta["log_reach"]))
    whole = kernel + jnp.exp(theta["log_rough"]) * jnp.eye(size)
    factor = jnp.linalg.cholesky(whole * data["sill"] ** 2)
    rest = data["y"] - data["x"] @ theta["trend"]
    z = jax.scipy.linalg.solve_triangular(factor, rest, lower=True)
    fit = -0.5 * jnp.sum(z**2) - jnp.sum(jnp.log(jnp.diagonal(factor)))
    prior = around(theta, log_reach=(0, 1), log_rough=(-1, 1))
    return fit + prior + around(theta, trend=(0, 5 * data["sill"]))


def field(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Soil at few places: a trend, how far it is alike, and how rough it is nearby."""
    count, sill = (5, 10, 25)[seed % 3], 10 ** rng.uniform(-2, 2)
    place = rng.normal(0, 1.5, (count, 2))
    gap = np.linalg.norm(place[:, None] - place, axis=2)
    x = np.column_stack([np.ones(count), place])
    kernel = np.exp(-gap / rng.uniform(0.5, 3)) + rng.uniform(0.05, 0.6) * np.eye(count)
    y = sill * (
        x @ rng.normal(0, 2, 3) + np.linalg.cholesky(kernel) @ rng.normal(size=count)
    )
    data = {"gap": gap, "x": x, "y": y, "sill": sill}

    def conditional(u):
        kernel = np.exp(-gap * np.exp(-u[:, :1, None]))
        kernel = kernel + np.exp(u[:, 1:, None]) * np.eye(count)
        factor = np.linalg.cholesky(kernel)
        design = np.linalg.solve(factor, np.broadcast_to(x, (len(u), *x.shape)))
        rows = np.linalg.solve(factor, np.broadcast_to(y[:, None], (len(u), count, 1)))
        height, *rest = linear_given(design, rows[:, :, 0], sill, 0, 5 * sill)
        height -= np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        return height + _normal(u, [0, -1], [1, 1]), *rest

    outer = {"log_reach": (-6.0, 6.5), "log_rough": (-7.5, 5.5)}
    return nested(_field, outer, {"trend": (3,)}, data, conditional, 41)


def _spillover(theta, data):
    # Between the inverses of the extreme roots of the map; rho is one of its shares.
    pull = jnp.tanh(theta["pull"])
    rest = data["y"] - pull * data["near"] - data["x"] @ theta["beta"]
    fit = jnp.sum(jnp.log1p(-pull * data["roots"])) - 0.5 * jnp.sum(rest**2)
    return fit + around(theta, pull=(0, 0.7), beta=(0, 3))


def spillover(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Prices of streets that follow the prices next door (a spatial lag)."""
    count, size = ((6, 2), (16, 3), (50, 8))[seed % 3]
    place = rng.normal(size=(count, 2))
    gap = np.linalg.norm(place[:, None] - place, axis=2) + 9 * np.eye(count)
    links = gap <= np.sort(gap, axis=1)[:, 2:3]
    links = (links | links.T).astype(float)
    degree = links.sum(axis=1)
    weights = links / degree[:, None]
    roots = np.linalg.eigvalsh(links / np.sqrt(np.outer(degree, degree)))
    x = np.column_stack([np.ones(count), rng.normal(size=(count, size - 1))])
    mean = x @ rng.normal(0, 1.5, size) + rng.normal(size=count)
    y = np.linalg.solve(np.eye(count) - rng.uniform(0, 0.8) * weights, mean)
    near = weights @ y
    data = {"x": x, "y": y, "near": near, "roots": roots}

    def conditional(u):
        pull = np.tanh(u)
        design = np.broadcast_to(x, (len(u), *x.shape))
        height, *rest = linear_given(design, y - pull * near, 1.0, 0, 3)
        height += np.log1p(-pull * roots).sum(axis=1)
        return height + _normal(u, 0, 0.7), *rest

    outer = {"pull": (-4.5, 4.5)}
    return nested(_spillover, outer, {"beta": (size,)}, data, conditional, 401)


def _stamp(theta, data):
    z = data["x"] - theta["shift"]
    pattern = jnp.cos(3 * z) * jnp.exp(-(z**2) / 8)
    mean = theta["gain"] * pattern + theta["base"]
    return _misfit(data, mean) + around(theta, shift=(0, 2), gain=(1, 0.7), base=(0, 1))


def stamp(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A pattern with stripes in a noisy strip: a place for each stripe."""
    count, sd = (6, 12, 30)[seed % 3], rng.uniform(0.3, 0.6)
    x = np.sort(rng.uniform(-5, 5, count))
    z = x - rng.normal(0, 1.5)
    y = rng.normal() + rng.uniform(0.8, 1.5) * np.cos(3 * z) * np.exp(-(z**2) / 8)
    y += sd * rng.normal(size=count)
    data = {"x": x, "y": y, "sd": sd}

    def conditional(u):
        z = x - u
        pattern = np.cos(3 * z) * np.exp(-(z**2) / 8)
        design = np.stack([pattern, np.ones_like(pattern)], axis=2)
        height, *rest = linear_given(design, y, sd, [1, 0], [0.7, 1])
        return height + _normal(u, 0, 2), *rest

    outer = {"shift": (-14.0, 14.0)}
    return nested(_stamp, outer, {"gain": (), "base": ()}, data, conditional, 4001)


def _eclipse(theta, data):
    away = jnp.abs(data["t"] - theta["middle"]) - jnp.exp(theta["log_half"])
    dark = jax.nn.sigmoid(-away / data["edge"])
    mean = theta["light"] - theta["depth"] * dark
    prior = around(theta, middle=(0, 1), log_half=(-1, 0.7), depth=(0.5, 0.5))
    return _misfit(data, mean) + prior + around(theta, light=(0, 1))


def eclipse(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A planet before its star, in few nights: each night may be the one."""
    count, sd = (6, 12, 30)[seed % 3], rng.uniform(0.2, 0.4)
    t, edge = np.sort(rng.uniform(-2, 2, count)), 0.08
    dark = np.abs(t - rng.normal(0, 0.8)) < np.exp(rng.normal(-0.8, 0.4))
    y = rng.normal() - rng.uniform(0.5, 1.2) * dark + sd * rng.normal(size=count)
    data = {"t": t, "y": y, "sd": sd, "edge": edge}

    def conditional(u):
        away = np.abs(t - u[:, :1]) - np.exp(u[:, 1:])
        dark = 1 / (1 + np.exp(np.clip(away / edge, -500, 500)))
        design = np.stack([-dark, np.ones_like(dark)], axis=2)
        height, *rest = linear_given(design, y, sd, [0.5, 0], [0.5, 1])
        return height + _normal(u, [0, -1], [1, 0.7]), *rest

    outer = {"middle": (-6.8, 6.8), "log_half": (-5.8, 3.8)}
    return nested(_eclipse, outer, {"depth": (), "light": ()}, data, conditional, 301)


def _short_arc(theta, data):
    way = data["x"] - theta["centre"]
    radius = jnp.sqrt(jnp.sum(way**2, axis=1) + 1e-9)
    prior = around(theta, centre=(0, 4), log_radius=(1, 0.7))
    rest = (radius - jnp.exp(theta["log_radius"])) / data["sd"]
    return -0.5 * jnp.sum(rest**2) + prior


def short_arc(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A circle of which a short arc was found: small and near, or large and far."""
    count, sd = (3, 5, 12)[seed % 3], rng.uniform(0.1, 0.3)
    turn = rng.uniform(0, 6) + np.sort(rng.uniform(0, rng.uniform(0.6, 2), count))
    ring = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    x = rng.normal(size=2) + 2.5 * ring + sd * rng.normal(size=(count, 2))
    box = {"centre": (np.full(2, -24.0), np.full(2, 24.0)), "log_radius": (-3.5, 5.0)}
    return latticed(_short_arc, box, {"x": x, "sd": sd}, 121)
