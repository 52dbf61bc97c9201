"""Sums, products and maxima of unlike pieces, with closed forms for their moments."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, logsumexp
from scipy import special

from softcvi_experiments.verdict._figures import closed, random_turn
from softcvi_experiments.verdict._lattice import latticed
from softcvi_experiments.verdict._mixtures import normals
from softcvi_experiments.verdict._posterior import RandomPosterior

_LOG_2PI = float(np.log(2 * np.pi))


def mixed(weights, means, variances) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of a mixture, from those of its pieces.

    Example:
        >>> mixed(np.array([0.5, 0.5]), np.array([[-1.0], [1.0]]), np.ones((2, 1)))[1]
        array([2.])
    """
    mean = weights @ means
    return mean, weights @ (variances + (means - mean) ** 2)


def _shares(rng, count: int) -> np.ndarray:
    return 0.08 + (1 - 0.08 * count) * rng.dirichlet(np.full(count, 2.0))


def _apart(rng, count: int, size: int, gap: float) -> np.ndarray:
    """Places of which each is about so far from the one before."""
    ways = rng.normal(size=(count, size))
    ways *= (
        gap * rng.uniform(0.7, 1.4, (count, 1)) / np.linalg.norm(ways, axis=1)[:, None]
    )
    return np.cumsum(ways, axis=0)


def _odd_company(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"] - data["means"]
    z = jnp.abs(z) / data["scale"][:, None]
    size = z.shape[1]
    bell = -0.5 * jnp.sum(z[0] ** 2) - 0.5 * size * _LOG_2PI
    tent = -jnp.sum(z[1]) - size * jnp.log(2.0)
    logistic = -jnp.sum(z[2] + 2 * jnp.log1p(jnp.exp(-z[2])))
    return logsumexp(data["log_height"] + jnp.stack([bell, tent, logistic]))


def odd_company(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A normal, a Laplace and a logistic piece of unlike widths, off the origin."""
    size, unit = (1, 3, 8)[seed % 3], 10 ** rng.uniform(-2, 2)
    weights, scale = _shares(rng, 3), 10 ** rng.uniform(-0.4, 0.4, 3)
    means = _apart(rng, 3, size, rng.uniform(4, 14))
    shift = unit * rng.normal(0, 60, size)
    data = {"shift": shift, "unit": unit, "means": means, "scale": scale}
    data["log_height"] = np.log(weights) - size * np.log(scale)
    wide = np.array([1.0, 2.0, np.pi**2 / 3]) * scale**2
    mean, variance = mixed(weights, means, wide[:, None])
    return closed(_odd_company, data, shift + unit * mean, unit**2 * variance)


def _triples(theta, data):
    y = data["back"] @ (theta["x"] - data["shift"])
    z = (y - data["middle"]) / data["sd"]
    low, mid, high = data["log_height"] - 0.5 * z**2
    return jnp.sum(jnp.logaddexp(jnp.logaddexp(low, mid), high))


def triples_turned(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Three unlike humps along each of some turned axes: their product has many."""
    size, unit = (1, 2, 3)[seed % 3], 10 ** rng.uniform(-2, 2)
    turn, shift = random_turn(rng, size), unit * rng.normal(0, 10, size)
    weights = np.stack([_shares(rng, 3) for _ in range(size)], axis=1)
    gaps = rng.uniform(3, 9, (2, size))
    middle = np.stack([-gaps[0], np.zeros(size), gaps[1]])
    sd = rng.uniform(0.4, 1.3, (3, size))
    mean = np.sum(weights * middle, axis=0)
    inner = np.sum(weights * (sd**2 + (middle - mean) ** 2), axis=0)
    data = {"back": turn.T / unit, "shift": shift, "middle": middle, "sd": sd}
    data["log_height"] = np.log(weights / sd)
    mean, variance = shift + unit * turn @ mean, unit**2 * turn**2 @ inner
    return closed(_triples, data, mean, variance)


def _soft_boxes(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    up, down = (z - data["low"]) / data["soft"], (z - data["high"]) / data["soft"]
    sides = jax.nn.log_sigmoid(up) + jax.nn.log_sigmoid(-down)
    # The difference of two sigmoids, which would underflow if it were written as one.
    sides += jnp.log1p(-jnp.exp(down - up)) - jnp.log(data["high"] - data["low"])
    return logsumexp(data["log_weights"] + jnp.sum(sides, axis=1))


def soft_boxes(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Flat boxes of unlike sides with soft edges, apart or into each other."""
    size, unit = (1, 2, 6)[seed % 3], 10 ** rng.uniform(-2, 3)
    weights, soft = _shares(rng, 3), rng.uniform(0.08, 0.3)
    middle, side = _apart(rng, 3, size, rng.uniform(3, 9)), rng.uniform(1, 6, (3, size))
    shift = unit * rng.normal(0, 8, size)
    data = {"shift": shift, "unit": unit, "soft": soft, "log_weights": np.log(weights)}
    data |= {"low": middle - side / 2, "high": middle + side / 2}
    # Uniform variables with logistic ones added.
    mean, variance = mixed(weights, middle, side**2 / 12 + (soft * np.pi) ** 2 / 3)
    return closed(_soft_boxes, data, shift + unit * mean, unit**2 * variance)


def _skewed_pieces(theta, data):
    x = (theta["x"] - data["shift"]) / data["unit"]
    z = jnp.einsum("kij,kj->ki", data["back"], x - data["place"])
    pieces = jnp.sum(-0.5 * z**2 + log_ndtr(data["skew"] * z), axis=1)
    return logsumexp(data["log_height"] + pieces)


def skewed_pieces(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two to four pieces, each skewed along axes of its own."""
    size, count = (2, 4, 10)[seed % 3], int(rng.integers(2, 5))
    unit, weights = 10 ** rng.uniform(-2, 2, size), _shares(rng, count)
    shift, place = unit * rng.normal(0, 9, size), _apart(rng, count, size, 5)
    turns = np.stack([random_turn(rng, size) for _ in range(count)])
    scale, skew = rng.uniform(0.3, 1.5, (count, size)), rng.normal(0, 5, (count, size))
    lean = skew / np.sqrt(1 + skew**2) * np.sqrt(2 / np.pi)
    means = place + np.einsum("kij,kj->ki", turns, scale * lean)
    inner = np.einsum("kij,kj->ki", turns**2, scale**2 * (1 - lean**2))
    back = np.swapaxes(turns, 1, 2) / scale[:, :, None]
    data = {"shift": shift, "unit": unit, "place": place, "back": back, "skew": skew}
    data["log_height"] = np.log(weights) - np.log(scale).sum(axis=1)
    mean, variance = mixed(weights, means, inner)
    return closed(_skewed_pieces, data, shift + unit * mean, unit**2 * variance)


def _core_and_halo(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    size = z.size
    halo = -0.5 * (5 + size) * jnp.log1p(jnp.sum(z**2) / 5)
    core = -0.5 * jnp.sum(((z - data["place"]) / data["small"]) ** 2)
    return jnp.logaddexp(data["halo"] + halo, data["core"] + core)


def core_and_halo(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A wide t and, out in its tail, a narrow normal."""
    size, small = (2, 4, 9)[seed % 3], rng.uniform(0.15, 0.5)
    unit, share = 10 ** rng.uniform(-3, 3), rng.uniform(0.15, 0.6)
    shift, place = unit * rng.normal(0, 20, size), rng.normal(size=size)
    place *= rng.uniform(2, 6) / np.linalg.norm(place)
    gammas = special.gammaln(2.5 + size / 2) - special.gammaln(2.5)
    data = {"shift": shift, "unit": unit, "place": place, "small": small}
    data["halo"] = np.log1p(-share) + gammas - size / 2 * np.log(5 * np.pi)
    data["core"] = np.log(share) - size / 2 * _LOG_2PI - size * np.log(small)
    weights, wide = np.array([1 - share, share]), np.array([[5 / 3], [small**2]])
    mean, variance = mixed(weights, np.stack([0 * place, place]), wide)
    return closed(_core_and_halo, data, shift + unit * mean, unit**2 * variance)


def ladder(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two long rails and the rungs between them, as normals that touch."""
    size, rungs = (2, 3, 6)[seed % 3], int(rng.integers(2, 5))
    gap, thin, long = rng.uniform(2, 4), rng.uniform(0.15, 0.4), rng.uniform(5, 9)
    turn = random_turn(rng, size) * 10 ** rng.uniform(-2, 2)
    places = np.zeros((2 + rungs, size))
    places[:2, 1] = -gap, gap
    places[2:, 0] = np.linspace(-1, 1, rungs) * long * 1.2
    sides = np.full((2 + rungs, size), thin)
    sides[:2, 0], sides[2:, 1] = long, gap / 1.5
    weights = _shares(rng, 2 + rungs)
    covariances = [turn @ np.diag(side**2) @ turn.T for side in sides]
    return normals(weights, places @ turn.T, covariances)


def splinters(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Four thin normals here and there, each with directions of its own, raw units."""
    size, unit = (3, 6, 12)[seed % 3], 10 ** rng.uniform(-3, 3, (3, 6, 12)[seed % 3])
    means, covariances = rng.normal(0, 4, (4, size)) * unit, []
    for _ in range(4):
        axes = random_turn(rng, size) * 10 ** rng.uniform(-1.2, 0.5, size)
        covariances.append((axes @ axes.T) * np.outer(unit, unit))
    return normals(_shares(rng, 4), means, covariances)


def _both_signs(theta, data):
    x = theta["x"]
    log_size = jnp.log(jnp.abs(x))
    side = jnp.where(x > 0, jnp.log(data["up"]), jnp.log1p(-data["up"]))
    return jnp.sum(side - log_size - 0.5 * ((log_size - data["m"]) / data["sd"]) ** 2)


def both_signs(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Effects whose size is log-normal and whose sign is not quite known."""
    size = (1, 2, 4)[seed % 3]
    m, sd, up = rng.normal(0, 4, size), *rng.uniform([[0.2], [0.2]], 0.7, (2, size))
    data = {"m": m, "sd": sd, "up": up}
    mean = (2 * up - 1) * np.exp(m + sd**2 / 2)
    return closed(_both_signs, data, mean, np.exp(2 * m + 2 * sd**2) - mean**2)


def _nobody_knows_who(theta, data):
    x = (theta["x"] - data["shift"]) / data["unit"]
    orders = np.array(list(itertools.permutations(range(x.size))))
    z = (x - data["place"][orders]) / data["sd"][orders]
    return logsumexp(-0.5 * jnp.sum(z**2, axis=1))


def nobody_knows_who(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two to four unlike numbers that were mixed up: all orders are as good."""
    size, unit = (2, 3, 4)[seed % 3], 10 ** rng.uniform(-2, 2)
    place = np.cumsum(rng.uniform(1.5, 7, size))
    sd, shift = rng.uniform(0.3, 1.2, size), unit * rng.normal(0, 15)
    mean = place.mean()
    variance = np.mean(sd**2 + (place - mean) ** 2)
    data = {"shift": shift, "unit": unit, "place": place, "sd": sd}
    right = np.full(size, shift + unit * mean), np.full(size, unit**2 * variance)
    return closed(_nobody_knows_who, data, *right)


def _signs_lost(theta, data):
    x = theta["x"]
    near = -0.5 * jnp.sum(((x - data["y"]) / data["sd"]) ** 2, axis=1)
    mirrored = -0.5 * jnp.sum(((x + data["y"]) / data["sd"]) ** 2, axis=1)
    right = jnp.log1p(-data["wrong"])
    return jnp.sum(jnp.logaddexp(right + near, jnp.log(data["wrong"]) + mirrored))


def signs_lost(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Readings of a vector, each of which may have the wrong sign."""
    size, count = (2, 4, 9)[seed % 3], int(rng.integers(3, 7))
    sd, wrong = 10 ** rng.uniform(-3, 3), rng.uniform(0.2, 0.5)
    truth = rng.normal(size=size)
    truth *= rng.uniform(0.8, 2.2) / np.linalg.norm(truth)
    flips = np.where(rng.uniform(size=(count, 1)) < wrong, -1, 1)
    y = flips * (truth + rng.normal(0, 0.7, (count, size)))
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=count)))
    means = signs @ y / count
    chances = np.sum(np.where(signs > 0, np.log1p(-wrong), np.log(wrong)), axis=1)
    weights = special.softmax(chances + 0.5 * count * np.sum(means**2, axis=1))
    mean, variance = mixed(weights, means, np.full(means.shape, 1 / count))
    data = {"y": sd * y, "sd": sd, "wrong": wrong}
    return closed(_signs_lost, data, sd * mean, sd**2 * variance)


def _best_of_three(theta, data):
    z = theta["x"] / data["unit"] - data["means"]
    z = jnp.einsum("kij,kj->ki", data["factor"], z)
    return jnp.max(data["high"] - 0.5 * jnp.sum(z**2, axis=1))


def best_of_three(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """The highest of three paraboloids of unlike width, with edges between."""
    unit = 10 ** rng.uniform(-2, 2, 2)
    means = _apart(rng, 3, 2, (2.5, 5, 9)[seed % 3])
    means -= means.mean(axis=0)
    factor = np.stack(
        [random_turn(rng, 2) / rng.uniform(0.5, 2.0, (2, 1)) for _ in range(3)]
    )
    data = {"unit": unit, "means": means, "factor": factor}
    data["high"] = rng.uniform(-0.7, 0.7, 3) + np.log(np.abs(np.linalg.det(factor)))
    corner = unit * (np.abs(means).max() + 14)
    return latticed(_best_of_three, {"x": (-corner, corner)}, data, 801)
