"""Normals that were bent, twisted, stretched or squeezed: exact draws or moments."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from softcvi_experiments.verdict._figures import closed, random_turn
from softcvi_experiments.verdict._posterior import (
    Moments,
    RandomPosterior,
    density,
    from_draws,
    from_moments,
)

_DRAWS = 400_000
# Weighted points of a standard normal, many enough for kinks, too.
_POINTS = np.linspace(-9, 9, 40_001)
_WEIGHTS = special.softmax(-0.5 * _POINTS**2)


def _drawn(log_prob, data, **draws) -> RandomPosterior:
    shapes = {name: value.shape[1:] for name, value in draws.items()}
    return from_draws(density(log_prob, shapes, data), draws, Moments())


def _given(log_prob, data, **sites) -> RandomPosterior:
    """Closed forms, mean and variance of each site."""
    mean = {name: np.asarray(value[0], float) for name, value in sites.items()}
    variance = {name: np.asarray(value[1], float) for name, value in sites.items()}
    target = density(
        log_prob, {name: value.shape for name, value in mean.items()}, data
    )
    return from_moments(target, mean, variance, "closed form")


def _saddle(theta, data):
    x = (theta["x"] - data["shift"]) / data["unit"]
    rest = (x[2:] - data["bend"] * x[0] * x[1]) / data["thin"]
    return -0.5 * (jnp.sum(x[:2] ** 2) + jnp.sum(rest**2))


def saddle(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Parameters near the product of two others: a thin saddle."""
    size, thin = (3, 4, 9)[seed % 3], rng.uniform(0.1, 0.5)
    unit, bend = 10 ** rng.uniform(-2, 2, size), rng.uniform(0.7, 2.5, size - 2)
    shift = unit * rng.normal(0, 8, size)
    variance = unit**2 * np.append([1.0, 1.0], bend**2 + thin**2)
    data = {"shift": shift, "unit": unit, "bend": bend, "thin": thin}
    return closed(_saddle, data, shift, variance)


def _twisted_column(theta, data):
    x, turn = theta["across"], data["twist"] * theta["along"]
    one = jnp.cos(turn) * x[0] + jnp.sin(turn) * x[1] - data["off"]
    two = jnp.cos(turn) * x[1] - jnp.sin(turn) * x[0]
    return -0.5 * (one**2 + (two / data["thin"]) ** 2 + theta["along"] ** 2)


def twisted_column(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A flat strip that turns around an axis beside it as it goes along."""
    twist, thin = (0.6, 1.2, 2.0)[seed % 3], rng.uniform(0.1, 0.4)
    data = {"twist": twist, "thin": thin, "off": rng.uniform(0, 3)}
    z = rng.normal(size=(3, _DRAWS))
    one, two, turn = data["off"] + z[0], thin * z[1], twist * z[2]
    across = np.cos(turn) * one - np.sin(turn) * two, np.sin(turn) * one
    across = across[0], across[1] + np.cos(turn) * two
    draws = {"across": np.stack(across, axis=1), "along": z[2]}
    return _drawn(_twisted_column, data, **draws)


def _random_flow(theta, data):
    x, half = (theta["x"] - data["shift"]) / data["unit"], data["move"].shape[1]
    height = 0.0
    for layer in range(data["move"].shape[0]):
        x = data["back"][layer] @ x
        still, moved = x[half:], x[:half]
        log_scale = jnp.tanh(data["stretch"][layer] @ still)
        moved = moved * jnp.exp(-log_scale) - data["move"][layer] @ jnp.sin(still)
        height -= jnp.sum(log_scale)
        x = jnp.concatenate([moved, still])
    return height - 0.5 * jnp.sum(x**2)


def random_flow(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A normal sent through layers of random couplings, as a flow would do it."""
    size, layers = (2, 4, 10)[seed % 3], 3
    half = size // 2
    unit = 10 ** rng.uniform(-2, 2)
    turns = np.stack([random_turn(rng, size) for _ in range(layers)])
    stretch, move = rng.normal(0, (half**-0.5), (2, layers, half, half))
    shift = unit * rng.normal(0, 10, size)
    data = {"shift": shift, "unit": unit, "stretch": 0.7 * stretch, "move": 1.5 * move}
    x = rng.normal(size=(_DRAWS, size))
    for layer in reversed(range(layers)):
        still = x[:, half:]
        moved = x[:, :half] + np.sin(still) @ data["move"][layer].T
        moved = moved * np.exp(np.tanh(still @ data["stretch"][layer].T))
        x = np.concatenate([moved, still], axis=1) @ turns[layer]
    data["back"] = turns
    return _drawn(_random_flow, data, x=shift + unit * x)


def _softplus_funnel(theta, data):
    v, scale = theta["v"], jax.nn.softplus(theta["v"])
    inner = jnp.sum((theta["x"] / scale) ** 2) / data["unit"] ** 2
    prior = ((v - data["middle"]) / data["wide"]) ** 2
    return -0.5 * (prior + inner) - theta["x"].size * jnp.log(scale)


def softplus_funnel(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A funnel whose scale is a softplus: a cone on one side, a neck on the other."""
    size, unit = (1, 4, 12)[seed % 3], 10 ** rng.uniform(-2, 2)
    middle, wide = rng.uniform(-1.5, 2), rng.uniform(1, 2.5)
    data = {"middle": middle, "wide": wide, "unit": unit}
    scale = np.logaddexp(0, middle + wide * _POINTS)
    variance = np.full(size, unit**2 * (_WEIGHTS @ scale**2))
    sites = {"v": (middle, wide**2), "x": (np.zeros(size), variance)}
    return _given(_softplus_funnel, data, **sites)


def _scale_in_pieces(theta, data):
    total = data["rate"] @ theta["v"]
    inner = jnp.sum(theta["x"] ** 2) * jnp.exp(-2 * total)
    return -0.5 * (jnp.sum(theta["v"] ** 2) + inner) - theta["x"].size * total


def scale_in_pieces(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A funnel whose scale is a product of several: only all together narrow it."""
    size, count = (1, 3, 8)[seed % 3], rng.integers(2, 5)
    rate = rng.normal(size=count)
    rate *= rng.uniform(0.4, 0.75) / np.linalg.norm(rate)
    variance = np.full(size, np.exp(2 * rate @ rate))
    sites = {"v": (np.zeros(count), np.ones(count)), "x": (np.zeros(size), variance)}
    return _given(_scale_in_pieces, {"rate": rate}, **sites)


def _leaning_funnel(theta, data):
    v, lean = theta["v"], data["lean"] * theta["v"] ** data["power"]
    inner = jnp.sum((theta["x"] - lean) ** 2) * jnp.exp(-v)
    return -0.5 * ((v / data["wide"]) ** 2 + inner + theta["x"].size * v)


def leaning_funnel(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A funnel whose middle moves along a line or a parabola as it widens."""
    size, wide = (1, 4, 10)[seed % 3], rng.uniform(0.6, 1.3)
    power, lean = (
        rng.integers(1, 3),
        rng.uniform(1, 4, size) * rng.choice([-1, 1], size),
    )
    middle = _WEIGHTS @ (wide * _POINTS) ** power
    moves = _WEIGHTS @ (wide * _POINTS) ** (2 * power) - middle**2
    data = {"lean": lean, "wide": wide, "power": power}
    variance = lean**2 * moves + np.exp(wide**2 / 2)
    sites = {"v": (0.0, wide**2), "x": (lean * middle, variance)}
    return _given(_leaning_funnel, data, **sites)


def _scales_of_groups(theta, data):
    top, v, x = theta["top"], theta["v"], theta["x"]
    middle = ((v - top) / data["near"]) ** 2
    inner = jnp.sum(x**2, axis=1) * jnp.exp(-v) + x.shape[1] * v
    return -0.5 * ((top / data["wide"]) ** 2 + jnp.sum(middle) + jnp.sum(inner))


def scales_of_groups(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Funnels of several groups whose scales have a common middle, without data."""
    groups, each = ((2, 1), (3, 3), (6, 4))[seed % 3]
    wide, near = rng.uniform(0.6, 1.2), rng.uniform(0.3, 0.9)
    total = wide**2 + near**2
    inner = np.zeros((groups, each)), np.full((groups, each), np.exp(total / 2))
    sites = {"top": (0.0, wide**2), "v": (np.zeros(groups), np.full(groups, total))}
    return _given(_scales_of_groups, {"wide": wide, "near": near}, **sites, x=inner)


def _around_curve(theta, data, curve):
    x = (theta["x"] - data["shift"]) / data["unit"]
    middle, sd = curve(x[0], data)
    rest = jnp.sum(((x[1:] - middle) / sd) ** 2 + 2 * jnp.log(sd))
    return -0.5 * (x[0] ** 2 + rest)


def _above(rng, log_prob, curve, size: int, data) -> RandomPosterior:
    """All but the first parameter are normal given that one."""
    unit = 10 ** rng.uniform(-2, 2, size)
    shift = unit * rng.normal(0, 6, size)
    with jax.enable_x64(True):
        middle, sd = (np.asarray(part) + 0 * _POINTS for part in curve(_POINTS, data))
    mean = _WEIGHTS @ middle
    variance = _WEIGHTS @ (sd**2 + (middle - mean) ** 2)
    mean = np.append(0.0, np.full(size - 1, mean))
    variance = np.append(1.0, np.full(size - 1, variance))
    data = data | {"shift": shift, "unit": unit}
    return closed(log_prob, data, shift + unit * mean, unit**2 * variance)


def _bow(x, data):
    return 0.0 * x, data["thin"] + data["open"] * jnp.abs(x)


def _bow_ridge(theta, data):
    return _around_curve(theta, data, _bow)


def bow_tie(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Narrow in the middle, and wider to both sides along one parameter."""
    data = {"thin": rng.uniform(0.05, 0.3), "open": rng.uniform(0.5, 2)}
    return _above(rng, _bow_ridge, _bow, (2, 4, 9)[seed % 3], data)


def _zigzag(x, data):
    steps = data["fast"] * x
    return data["high"] * jnp.abs(steps - jnp.round(steps)), data["thin"]


def _zigzag_ridge(theta, data):
    return _around_curve(theta, data, _zigzag)


def zigzag(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A ridge that goes up and down in straight pieces."""
    data = {"thin": rng.uniform(0.1, 0.3), "fast": rng.uniform(0.3, 0.8)}
    return _above(
        rng,
        _zigzag_ridge,
        _zigzag,
        (2, 3, 7)[seed % 3],
        data | {"high": rng.uniform(2, 4)},
    )


def _stairs(x, data):
    return data["high"] * jnp.round(data["fast"] * x), data["thin"]


def _stairs_ridge(theta, data):
    return _around_curve(theta, data, _stairs)


def staircase(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A ridge in steps: it jumps wherever the first parameter is rounded up."""
    data = {"thin": rng.uniform(0.2, 0.5), "fast": rng.uniform(0.8, 1.6)}
    return _above(
        rng,
        _stairs_ridge,
        _stairs,
        (2, 3, 6)[seed % 3],
        data | {"high": rng.uniform(1, 2)},
    )
