"""Small models of applied studies with two parameters: curves, times, counts, waves."""

import jax
import jax.numpy as jnp
import numpy as np

from softcvi_experiments.verdict._gridded import gridded
from softcvi_experiments.verdict._posterior import RandomPosterior


def _prior(theta, sds):
    return sum(-0.5 * (theta[name] / sd) ** 2 for name, sd in sds.items())


def _von_mises(theta, data):
    angle = 2 * jnp.pi * jax.nn.sigmoid(theta["u"])
    inside = jax.nn.log_sigmoid(theta["u"]) + jax.nn.log_sigmoid(-theta["u"])
    strength = jnp.exp(theta["k"])
    turned = jnp.cos(2 * (data["y"] - angle))
    order = jnp.log(jax.scipy.special.i0e(strength)) + strength
    rows = strength * turned - order
    return jnp.sum(rows) + inside - 0.5 * (theta["k"] - 1) ** 2


def von_mises(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Axial data: an orientation is known up to half a turn."""
    angle = rng.uniform(0.2, np.pi - 0.2)
    y = rng.vonmises(0.0, rng.uniform(1, 5), 12) / 2 + angle
    return gridded(_von_mises, {"u": (-7, 7), "k": (-5, 6)}, {"y": y}, 601)


def _sinusoid(theta, data):
    wave = jnp.sin(jnp.exp(theta["f"]) * data["t"] + theta["p"])
    misfit = jnp.sum((data["y"] - wave) ** 2) / data["sd"] ** 2
    return -0.5 * misfit - 0.5 * (theta["f"] / 0.7) ** 2 - 0.5 * theta["p"] ** 2


def sinusoid(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Frequency and phase of a wave at few uneven times."""
    t, sd = np.sort(rng.uniform(0, 8, 8)), rng.uniform(0.4, 0.8)
    y = np.sin(np.exp(0.5 * rng.normal()) * t + 0.5 * rng.normal())
    data = {"t": t, "y": y + sd * rng.normal(size=8), "sd": sd}
    return gridded(_sinusoid, {"f": (-4, 4), "p": (-5, 5)}, data, 801)


def _poisson_change(theta, data):
    logs = jnp.stack([theta["a"], theta["b"]])
    rows = data["y"][:, None] * logs - jnp.exp(logs)
    before = jnp.cumsum(rows[:, 0])
    after = jnp.sum(rows[:, 1]) - jnp.cumsum(rows[:, 1])
    total = before + after
    top = jnp.max(total)
    return top + jnp.log(jnp.mean(jnp.exp(total - top))) - 0.125 * jnp.sum(logs**2)


def poisson_change(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Rates of counts before and after a change at an unknown time."""
    change = rng.integers(3, 20)
    rates = rng.uniform(1, 6, 2)
    y = rng.poisson(np.where(np.arange(24) < change, *rates))
    return gridded(_poisson_change, {"a": (-9, 5), "b": (-9, 5)}, {"y": y}, 601)


def _robust_line(theta, data):
    z = (data["y"] - theta["a"] - theta["b"] * data["x"]) / 0.5
    return -1.5 * jnp.sum(jnp.log1p(z**2 / 2)) + _prior(theta, {"a": 10, "b": 10})


def robust_line(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A line with heavy-tailed noise, some of its points from another line."""
    x = rng.normal(size=16)
    lines = rng.normal(0, 3, (2, 2))
    other = rng.uniform(size=16) < 0.4
    y = np.where(other, lines[0, 0] + lines[0, 1] * x, lines[1, 0] + lines[1, 1] * x)
    data = {"x": x, "y": y + 0.4 * rng.normal(size=16)}
    return gridded(_robust_line, {"a": (-15, 15), "b": (-15, 15)}, data, 601)


def _two_lines(theta, data):
    fits = data["x"][:, None] * jnp.stack([theta["a"], theta["b"]])
    heights = -0.5 * ((data["y"][:, None] - fits) / 0.6) ** 2
    rows = jax.scipy.special.logsumexp(heights, axis=1)
    return jnp.sum(rows) + _prior(theta, {"a": 4, "b": 4})


def two_lines(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Points of two lines through the origin whose labels are unknown."""
    x = rng.uniform(0.3, 2, 14) * rng.choice([-1, 1], 14)
    slopes = rng.normal(0, 2, 2)
    y = x * rng.choice(slopes, 14) + 0.6 * rng.normal(size=14)
    return gridded(_two_lines, {"a": (-14, 14), "b": (-14, 14)}, {"x": x, "y": y}, 601)


def _epidemic(theta, data):
    spread, recovery = jnp.exp(theta["s"]), jnp.exp(theta["r"])

    def day(state, _):
        well, ill = state
        new, gone = 0.5 * spread * well * ill, 0.5 * recovery * ill
        state = well - new, jnp.clip(ill + new - gone, 0.0, 1.0)
        return state, state[1]

    begin = jnp.asarray(0.97, spread.dtype), jnp.asarray(0.03, spread.dtype)
    _, ill = jax.lax.scan(day, begin, data["y"])
    misfit = jnp.sum((data["y"] - ill) ** 2) / data["sd"] ** 2
    return -0.5 * misfit - 0.5 * theta["s"] ** 2 - 0.5 * (theta["r"] + 1) ** 2


def epidemic(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Shares of infected in a model of an epidemic, by steps of half a day."""
    well, ill, shares = 0.97, 0.03, []
    spread, recovery = np.exp(0.4 * rng.normal()), np.exp(0.4 * rng.normal() - 1)
    for _ in range(30):
        new, gone = 0.5 * spread * well * ill, 0.5 * recovery * ill
        well, ill = well - new, ill + new - gone
        shares.append(ill)
    sd = rng.uniform(0.05, 0.15)
    data = {"y": np.array(shares) + sd * rng.normal(size=30), "sd": sd}
    return gridded(_epidemic, {"s": (-5, 3), "r": (-6, 2)}, data, 301)


def _weibull(theta, data):
    shape = jnp.exp(theta["k"])
    log_z = jnp.log(data["t"]) - theta["m"]
    hazard = theta["k"] - theta["m"] + (shape - 1) * log_z
    rows = data["seen"] * hazard - jnp.exp(shape * log_z)
    return jnp.sum(rows) + _prior(theta, {"k": 1, "m": 5})


def weibull(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Survival times, many of them censored."""
    t = np.exp(rng.normal(2, 1)) * rng.weibull(rng.uniform(0.6, 2.5), 15)
    end = np.quantile(t, rng.uniform(0.3, 0.8))
    data = {"t": np.minimum(t, end), "seen": 1.0 * (t < end)}
    return gridded(_weibull, {"k": (-5, 4), "m": (-10, 20)}, data)


def _beta_binomial(theta, data):
    share, size = jax.nn.sigmoid(theta["m"]), jnp.exp(theta["s"])
    a, b = share * size, (1 - share) * size
    beta = jax.scipy.special.betaln
    rows = beta(data["y"] + a, data["n"] - data["y"] + b) - beta(a, b)
    return jnp.sum(rows) - 0.5 * (theta["m"] / 2) ** 2 - 0.5 * (theta["s"] - 1) ** 2


def beta_binomial(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Shares of successes that differ between few groups."""
    n = rng.integers(5, 20, 8)
    y = rng.binomial(n, rng.beta(rng.uniform(0.5, 3), rng.uniform(0.5, 6), 8))
    return gridded(_beta_binomial, {"m": (-8, 8), "s": (-5, 7)}, {"y": y, "n": n})


def _smoothness(theta, data):
    length, noise = jnp.exp(theta["l"]), jnp.exp(2 * theta["s"])
    gap = (data["x"][:, None] - data["x"]) / length
    kernel = jnp.exp(-0.5 * gap**2) + (noise + 1e-3) * jnp.eye(data["x"].size)
    factor = jnp.linalg.cholesky(kernel)
    z = jax.scipy.linalg.solve_triangular(factor, data["y"], lower=True)
    fit = -0.5 * jnp.sum(z**2) - jnp.sum(jnp.log(jnp.diagonal(factor)))
    return fit - 0.5 * theta["l"] ** 2 - 0.5 * (theta["s"] + 1) ** 2


def smoothness(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Length and noise of a Gaussian process: smooth with noise, or rough without."""
    x = np.sort(rng.uniform(-3, 3, 8))
    y = np.sin(rng.uniform(0.8, 2.5) * x) + rng.uniform(0.2, 0.6) * rng.normal(size=8)
    return gridded(_smoothness, {"l": (-5, 5), "s": (-6, 4)}, {"x": x, "y": y}, 201)


def _dose(theta, data):
    steep = jnp.exp(theta["h"])
    fit = jax.nn.sigmoid(steep * (data["x"] - theta["c"]))
    rows = data["y"] * jnp.log(fit + 1e-6) + (3 - data["y"]) * jnp.log1p(1e-6 - fit)
    return jnp.sum(rows) - 0.5 * (theta["c"] / 3) ** 2 - 0.5 * (theta["h"] - 1) ** 2


def dose(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Centre and steepness of a response to few doses, three animals each."""
    x = np.linspace(-3, 3, 7)
    y = rng.binomial(3, 1 / (1 + np.exp(-2.5 * (x - rng.normal()))))
    return gridded(_dose, {"c": (-14, 14), "h": (-4, 6)}, {"x": x, "y": y}, 601)
