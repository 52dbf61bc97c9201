"""Several modes by products, hidden bits, squares and angles; shells and bent tails."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from scipy import special, stats

from softcvi_experiments.verdict._lattice import latticed
from softcvi_experiments.verdict._posterior import (
    Quantiles,
    RandomPosterior,
    density,
    from_draws,
    from_moments,
)

_DRAWS = 200_000


def _student_log(z, df):
    return -0.5 * (df + 1) * jnp.log1p(z**2 / df)


def _prior_conflict(theta, data):
    u = data["back"] @ (theta["x"] - data["shift"])
    prior = _student_log(u, data["df"])
    rows = _student_log((data["y"] - u) / data["sd"], data["df"])
    return data["strength"] * jnp.sum(prior) + jnp.sum(rows)


def prior_conflict(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Heavy-tailed data far from a heavy-tailed prior, in turned coordinates."""
    size, count = (1, 2, 3)[seed % 3], 3
    df, sd = rng.uniform(3, 6), rng.uniform(0.7, 1.5)
    centre = rng.uniform(6, 12, size) * rng.choice([-1, 1], size)
    y = centre + sd * rng.normal(size=(count, size))
    turn = stats.ortho_group.rvs(size, random_state=rng) if size > 1 else np.eye(1)
    unit = 10 ** rng.uniform(-2, 2)
    data = {
        "y": y,
        "df": df,
        "sd": sd,
        "strength": float(count),
        "shift": unit * rng.normal(0, 20, size),
        "back": turn.T / unit,
    }
    u = np.sinh(np.linspace(-9, 9, 20001))[:, None]
    heights = -0.5 * (df + 1) * count * np.log1p(u**2 / df)
    for row in y:
        heights = heights - 0.5 * (df + 1) * np.log1p(((row - u) / sd) ** 2 / df)
    weights = special.softmax(heights + 0.5 * np.log1p(u**2), axis=0)
    middle = np.sum(weights * u, axis=0)
    variance = np.sum(weights * (u - middle) ** 2, axis=0)
    mean = data["shift"] + unit * turn @ middle
    target = density(_prior_conflict, {"x": (size,)}, data)
    right = {"x": mean}, {"x": unit**2 * turn**2 @ variance}
    return from_moments(target, *right, "quadrature")


def _opinions(theta, data):
    z = (theta["x"] - data["means"]) / data["sds"]
    rows = -0.5 * jnp.sum(z**2, axis=-1) - jnp.sum(jnp.log(data["sds"]), axis=-1)
    return jnp.sum(logsumexp(rows, axis=1))


def opinions(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A product of three mixtures of two normals each: eight normals."""
    size = (2, 5, 12)[seed % 3]
    unit = 10 ** rng.uniform(-2, 2, size)
    way = rng.normal(size=size)
    ends = rng.uniform(3, 15) * np.outer([-1, 1], way / np.linalg.norm(way))
    sds = 10 ** rng.uniform(-0.15, 0.15, (3, 2, size))
    means = ends + 0.4 * rng.normal(size=(3, 2, size)) / np.sqrt(size)
    shift = rng.normal(0, 10, size)
    heights, centres, variances = [], [], []
    for pick in np.ndindex(2, 2, 2):
        m = np.array([means[i, k] for i, k in enumerate(pick)])
        s = np.array([sds[i, k] for i, k in enumerate(pick)])
        variance = 1 / np.sum(1 / s**2, axis=0)
        centre = variance * np.sum(m / s**2, axis=0)
        fit = -0.5 * np.sum(((m - centre) / s) ** 2) - np.sum(np.log(s))
        heights.append(fit + 0.5 * np.sum(np.log(variance)))
        centres.append(centre)
        variances.append(variance)
    weights = special.softmax(heights)
    mean = weights @ np.array(centres)
    variance = weights @ (np.array(variances) + (np.array(centres) - mean) ** 2)
    data = {"means": unit * (shift + means), "sds": unit * sds}
    target = density(_opinions, {"x": (size,)}, data)
    right = {"x": unit * (shift + mean)}, {"x": unit**2 * variance}
    return from_moments(target, *right, "closed form")


def _hidden_bits(theta, data):
    z = data["factor"] @ (theta["x"] - data["centre"])
    bits = data["weights"] @ theta["x"] + data["bias"]
    return -0.5 * jnp.sum(z**2) + jnp.sum(jax.nn.softplus(bits))


def hidden_bits(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A Boltzmann machine whose two or three hidden bits are summed out."""
    size, bits = ((2, 2), (6, 3), (15, 3))[seed % 3]
    noise = rng.normal(size=(size, 3 * size))
    covariance = noise @ noise.T / (3 * size)
    root = np.linalg.cholesky(covariance)
    ways = np.linalg.qr(rng.normal(size=(size, bits)))[0] * rng.uniform(4, 9, bits)
    centre = rng.normal(0, 4, size)
    # A bit adds the covariance times its weights to the mean.
    weights = np.linalg.solve(root.T, ways).T
    bias = -weights @ centre - 0.5 * np.sum(ways**2, axis=0)
    bias += rng.normal(0, 0.7, bits)
    heights, centres = [], []
    for pick in np.ndindex(*(2,) * bits):
        push = np.array(pick) @ weights
        centres.append(centre + covariance @ push)
        fit = 0.5 * push @ covariance @ push + push @ centre
        heights.append(fit + np.array(pick) @ bias)
    shares = special.softmax(heights)
    mean = shares @ np.array(centres)
    variance = np.diag(covariance) + shares @ (np.array(centres) - mean) ** 2
    data = {
        "factor": np.linalg.inv(root),
        "centre": centre,
        "weights": weights,
        "bias": bias,
    }
    target = density(_hidden_bits, {"x": (size,)}, data)
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def _bullseye(theta, data):
    z = (theta["x"] - data["middle"]) / data["unit"]
    radius = jnp.sqrt(jnp.sum(z**2) + 1e-12)
    shell = -0.5 * ((radius - data["radius"]) / data["width"]) ** 2
    blob = data["height"] - 0.5 * jnp.sum(z**2)
    return jnp.logaddexp(shell, blob)


def bullseye(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A shell around a blob, in two, three and five dimensions."""
    size = (2, 3, 5)[seed % 3]
    radius, width = rng.uniform(6, 12), rng.uniform(0.4, 1.0)
    r = np.linspace(0, 30, 60001)
    shell = r ** (size - 1) * np.exp(-0.5 * ((r - radius) / width) ** 2)
    blob = r ** (size - 1) * np.exp(-0.5 * r**2)
    share = rng.uniform(0.3, 0.7)
    second = share * (shell @ r**2) / shell.sum() + (1 - share) * size
    unit, middle = 10 ** rng.uniform(-2, 2, size), rng.normal(0, 5, size)
    data = {
        "unit": unit,
        "middle": middle * unit,
        "radius": radius,
        "width": width,
        "height": np.log((1 - share) * shell.sum() / (share * blob.sum())),
    }
    target = density(_bullseye, {"x": (size,)}, data)
    right = {"x": middle * unit}, {"x": unit**2 * second / size}
    return from_moments(target, *right, "closed form")


def _squares(theta, data):
    fit = (data["a"] @ theta["x"]) ** 2
    rest = (data["y"] - fit) / data["noise"]
    return -0.5 * jnp.sum(rest**2) - 0.125 * jnp.sum(theta["x"] ** 2)


def squares(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A vector of which only squares of projections were seen, with noise."""
    size, count = ((2, 4), (3, 5))[seed % 2]
    a, x = rng.normal(size=(count, size)), rng.normal(0, 2, size)
    noise = rng.uniform(1.5, 3.5)
    data = {"a": a, "y": (a @ x) ** 2 + noise * rng.normal(size=count), "noise": noise}
    box = {"x": (np.full(size, -13.0), np.full(size, 13.0))}
    return latticed(_squares, box, data, (401, 121)[seed % 2])


def _phase_ramp(theta, data):
    turned = jnp.cos(data["y"] - theta["offset"] - theta["slope"] * data["t"])
    prior = (theta["offset"] / 2) ** 2 + (theta["slope"] / 3) ** 2
    return data["strength"] * jnp.sum(turned) - 0.5 * prior


def phase_ramp(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A line seen modulo a full turn at few uneven times."""
    t = np.sort(rng.uniform(0, 4, 6))
    strength = rng.uniform(2, 6)
    y = rng.normal() + rng.normal(0, 2) * t + rng.vonmises(0, strength, 6)
    data = {"t": t, "y": y % (2 * np.pi), "strength": strength}
    box = {"offset": (-15.0, 15.0), "slope": (-22.0, 22.0)}
    return latticed(_phase_ramp, box, data, 601)


def _bent_student(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    first = _student_log(z[0], data["df"])
    rest = z[1:] - data["bend"] * jnp.sqrt(1 + z[0] ** 2)
    return first - 0.5 * jnp.sum((rest / data["width"]) ** 2)


def bent_student(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Normals around a hyperbola of a parameter with a heavy tail."""
    size = (2, 4, 10)[seed % 3]
    data = {
        "shift": rng.normal(0, 100, size),
        "unit": 10 ** rng.uniform(-2, 2, size),
        "df": rng.uniform(2.5, 4),
        "bend": rng.uniform(0.5, 2, size - 1) * rng.choice([-1, 1], size - 1),
        "width": rng.uniform(0.3, 1.0, size - 1),
    }
    data["shift"] *= data["unit"]
    first = rng.standard_t(data["df"], (_DRAWS, 1))
    rest = data["bend"] * np.sqrt(1 + first**2)
    rest += data["width"] * rng.normal(size=rest.shape)
    z = np.concatenate([first, rest], axis=1)
    target = density(_bent_student, {"x": (size,)}, data)
    return from_draws(target, {"x": data["shift"] + data["unit"] * z}, Quantiles())


def _turned_students(theta, data):
    z = data["back"] @ (theta["x"] - data["shift"])
    return jnp.sum(_student_log(z, data["df"]))


def turned_students(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Sums of independent t variables with 2.5 to 4 degrees of freedom."""
    size = (3, 10, 30)[seed % 3]
    mix = np.eye(size) + 0.7 * rng.normal(size=(size, size)) / np.sqrt(size)
    unit, df = 10 ** rng.uniform(-2, 2, size), rng.uniform(2.5, 4, size)
    shift = unit * rng.normal(0, 10, size)
    data = {"back": np.linalg.inv(mix) / unit, "shift": shift, "df": df}
    z = rng.standard_t(df, (_DRAWS, size))
    target = density(_turned_students, {"x": (size,)}, data)
    return from_draws(target, {"x": shift + unit * (z @ mix.T)}, Quantiles())


def _elastic_net(theta, data):
    b = theta["b"]
    rest = (data["y"] - data["x"] @ b) / data["noise"]
    prior = jnp.sum(data["kink"] * jnp.abs(b)) + 0.5 * jnp.sum((b / data["wide"]) ** 2)
    return -0.5 * jnp.sum(rest**2) - prior


def elastic_net(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """An orthogonal design in raw units with a prior that has a kink at zero."""
    size = (4, 20, 60)[seed % 3]
    rows, noise = size + 20, 10 ** rng.uniform(-1, 1)
    unit = 10 ** rng.uniform(-4, 4, size)
    basis = np.linalg.qr(rng.normal(size=(rows, size)))[0]
    found = np.where(rng.uniform(size=size) < 0.4, rng.normal(0, 4, size), 0.0)
    found += rng.normal(size=size)
    kink, wide = rng.uniform(0.3, 3, size), rng.uniform(2, 8, size)
    # In units of the least-squares errors each coefficient is on its own.
    z = np.linspace(-25, 25, 40001)[:, None]
    height = -0.5 * (z - found) ** 2 - kink * np.abs(z) - 0.5 * (z / wide) ** 2
    weights = special.softmax(height, axis=0)
    mean = np.sum(weights * z, axis=0)
    variance = np.sum(weights * (z - mean) ** 2, axis=0)
    data = {
        "x": basis / unit * noise,
        "y": noise * basis @ found,
        "noise": noise,
        "kink": kink / unit,
        "wide": wide * unit,
    }
    target = density(_elastic_net, {"b": (size,)}, data)
    right = {"b": unit * mean}, {"b": unit**2 * variance}
    return from_moments(target, *right, "quadrature")


def _gumbel_chain(theta, data):
    x = (theta["x"] - data["shift"]) / data["unit"]
    before = jnp.concatenate([jnp.zeros(1, x.dtype), x[:-1]])
    z = x - data["echo"] * before
    return -jnp.sum(z + jnp.exp(-z))


def gumbel_chain(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A chain whose steps have Gumbel errors, in raw units."""
    size = (3, 15, 40)[seed % 3]
    echo = rng.uniform(0.3, 0.95) * rng.choice([-1, 1])
    unit = 10 ** rng.uniform(-5, 5, size)
    shift = unit * rng.normal(0, 10, size)
    mean, variance = np.zeros(size), np.zeros(size)
    for k in range(size):
        mean[k] = np.euler_gamma + (echo * mean[k - 1] if k else 0.0)
        variance[k] = np.pi**2 / 6 + (echo**2 * variance[k - 1] if k else 0.0)
    target = density(
        _gumbel_chain, {"x": (size,)}, {"shift": shift, "unit": unit, "echo": echo}
    )
    right = {"x": shift + unit * mean}, {"x": unit**2 * variance}
    return from_moments(target, *right, "closed form")
