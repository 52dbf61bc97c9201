"""Groups, years, places and species that go together: normal given a few numbers."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr

from softcvi_experiments.verdict._coordinates import normal
from softcvi_experiments.verdict._lattice import latticed, linear_given, nested
from softcvi_experiments.verdict._posterior import RandomPosterior
from softcvi_experiments.verdict._priors import around
from softcvi_experiments.verdict._weighed import weighed


def _drifting(theta, data):
    steps = jnp.cumsum(theta["step"]) * jnp.exp(theta["log_step"])
    slope = theta["start"] + jnp.concatenate([jnp.zeros(1), steps])
    rest = (data["y"] - data["x"] * slope) * jnp.exp(-theta["log_sd"])
    fit = -0.5 * jnp.sum(rest**2) - rest.size * theta["log_sd"]
    prior = around(theta, step=(0, 1), start=(0, 3 * data["unit"]))
    middle = jnp.log(data["unit"])
    return fit + prior + around(theta, log_step=(middle - 1.5, 1), log_sd=(middle, 1))


def drifting_slope(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A slope that walks in time, in steps of unknown size: its steps are the sites."""
    count, unit = (4, 12, 40)[seed % 3], 10 ** rng.uniform(-2, 2)
    x = rng.normal(size=count)
    slope = rng.normal() + np.cumsum(rng.uniform(0.05, 0.6) * rng.normal(size=count))
    y = unit * (x * slope + rng.uniform(0.3, 1) * rng.normal(size=count))
    middle = np.log(unit)
    below = np.tril(np.ones((count, count - 1)), -1)

    def conditional(u):
        steps = np.exp(u[:, 0])[:, None, None] * (x[:, None] * below)
        first = np.broadcast_to(x[:, None], (len(u), count, 1))
        design = np.concatenate([first, steps], axis=2)
        wide = np.append(3 * unit, np.ones(count - 1))
        height, *rest = linear_given(design, y, np.exp(u[:, 1]), 0, wide)
        return height + normal(u, [middle - 1.5, middle], 1), *rest

    outer = {
        "log_step": (middle - 8.2, middle + 5.2),
        "log_sd": (middle - 6.7, middle + 6.7),
    }
    data = {"x": x, "y": y, "unit": unit}
    inner = {"start": (), "step": (count - 1,)}
    return nested(_drifting, outer, inner, data, conditional, 51)


def _hidden_cycle(theta, data):
    echo, f = jnp.tanh(theta["echo"]), theta["cycle"]
    noise = (data["y"] - theta["load"][:, None] * f) / data["sd"]
    moves = (f[1:] - echo * f[:-1]) ** 2 / (1 - echo**2)
    fit = -0.5 * (jnp.sum(noise**2) + f[0] ** 2 + jnp.sum(moves))
    fit -= 0.5 * (f.size - 1) * jnp.log1p(-(echo**2))
    return fit + around(theta, load=(0, 1), echo=(0.7, 0.7))


def hidden_cycle(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two series that follow one hidden cycle, whose sign nobody knows."""
    count, sd = (3, 7, 14)[seed % 3], rng.uniform(0.3, 0.8)
    echo, f = np.tanh(rng.normal(0.9, 0.3)), [rng.normal()]
    for _ in range(count - 1):
        f.append(echo * f[-1] + np.sqrt(1 - echo**2) * rng.normal())
    y = rng.normal(size=(2, 1)) * np.array(f) + sd * rng.normal(size=(2, count))
    ends = np.diag(np.r_[1.0, np.zeros(count - 2), 1.0])
    inner_years = np.eye(count) - ends
    links = np.eye(count, k=1) + np.eye(count, k=-1)

    def conditional(u):
        echo = np.tanh(u[:, 2])[:, None, None]
        own = ends + (1 + echo**2) * inner_years - echo * links
        precision = own / (1 - echo**2)
        known = np.sum(u[:, :2] ** 2, axis=1) / sd**2
        precision = precision + known[:, None, None] * np.eye(count)
        covariance = np.linalg.inv(precision)
        shift = u[:, :2] @ y / sd**2
        mean = np.einsum("nij,nj->ni", covariance, shift)
        height = 0.5 * np.sum(mean * shift, axis=1)
        height -= 0.5 * np.linalg.slogdet(precision)[1]
        height -= 0.5 * (count - 1) * np.log1p(-(echo[:, 0, 0] ** 2))
        height += normal(u, [0, 0, 0.7], [1, 1, 0.7])
        return height, mean, np.diagonal(covariance, axis1=1, axis2=2)

    outer = {"load": (np.full(2, -6.7), np.full(2, 6.7)), "echo": (-4.0, 5.4)}
    inner, data = {"cycle": (count,)}, {"y": y, "sd": sd}
    return nested(_hidden_cycle, outer, inner, data, conditional, 41)


def _effects(theta, data):
    link = jnp.tanh(theta["link"])
    one, other = jnp.exp(theta["log_sd"])
    z = theta["z"]
    level = theta["mean"][0] + one * z[:, 0]
    slope = link * z[:, 0] + jnp.sqrt(1 - link**2) * z[:, 1]
    slope = theta["mean"][1] + other * slope
    mean = data["of_group"] @ level + data["x"] * (data["of_group"] @ slope)
    fit = -0.5 * jnp.sum(((data["y"] - mean) / data["sd"]) ** 2)
    prior = around(theta, z=(0, 1), mean=(0, 3), link=(0, 0.7))
    return fit + prior + around(theta, log_sd=(-0.7, 0.8))


def slopes_and_levels(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Groups with levels and slopes that go together, in units of their spreads."""
    groups, sd = (2, 4, 8)[seed % 3], rng.uniform(0.3, 0.8)
    of_group = np.kron(np.eye(groups), np.ones((3, 1)))
    x = rng.normal(size=3 * groups)
    z = rng.normal(size=(groups, 2))
    z[:, 1] = 0.6 * z[:, 0] + 0.8 * z[:, 1]
    ways = rng.normal(size=2) + rng.uniform(0.2, 0.9, 2) * z
    y = of_group @ ways[:, 0] + x * (of_group @ ways[:, 1])
    y += sd * rng.normal(size=y.size)

    def conditional(u):
        one, other = np.exp(u[:, :2]).T[:, :, None, None]
        link = np.tanh(u[:, 2])[:, None, None]
        first = one * of_group + link * other * x[:, None] * of_group
        second = np.sqrt(1 - link**2) * other * x[:, None] * of_group
        both = np.stack([first, second], axis=3).reshape(len(u), len(x), -1)
        start = np.broadcast_to(np.stack([np.ones_like(x), x], 1), (len(u), len(x), 2))
        design = np.concatenate([start, both], axis=2)
        wide = np.append([3.0, 3.0], np.ones(2 * groups))
        height, *rest = linear_given(design, y, sd, 0, wide)
        return height + normal(u, [-0.7, -0.7, 0], [0.8, 0.8, 0.7]), *rest

    data = {"of_group": of_group, "x": x, "y": y, "sd": sd}
    outer = {"log_sd": (np.full(2, -6.0), np.full(2, 4.6)), "link": (-4.7, 4.7)}
    inner = {"mean": (2,), "z": (groups, 2)}
    return nested(_effects, outer, inner, data, conditional, 31)


def _network(theta, data):
    spread = jnp.exp(theta["log_spread"])
    effect = jnp.concatenate([jnp.zeros(1), theta["effect"]])
    mean = data["of_trial"] @ theta["trial"] + data["of_drug"] @ effect
    total = jnp.sqrt(data["se"] ** 2 + spread**2)
    fit = -0.5 * jnp.sum(((data["y"] - mean) / total) ** 2) - jnp.sum(jnp.log(total))
    # A half-Cauchy spread.
    prior = theta["log_spread"] - jnp.log1p(spread**2 / 0.25)
    return fit + prior + around(theta, trial=(0, 3), effect=(0, 1.5))


def network_of_trials(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Drugs that were compared in pairs, in trials that differ more or less."""
    trials, drugs = ((2, 2), (6, 4), (16, 6))[seed % 3]
    pairs = np.array([rng.choice(drugs, 2, replace=False) for _ in range(trials)])
    pairs[: drugs - 1] = [(k, k + 1) for k in range(drugs - 1)][:trials]
    of_trial = np.kron(np.eye(trials), np.ones((2, 1)))
    of_drug = np.eye(drugs)[pairs.ravel()]
    se = rng.uniform(0.1, 0.5, 2 * trials)
    y = of_trial @ rng.normal(size=trials) + of_drug @ rng.normal(0, 0.7, drugs)
    y += np.hypot(se, rng.uniform(0, 0.5)) * rng.normal(size=y.size)
    whole = np.concatenate([of_trial, of_drug[:, 1:]], axis=1)
    wide = np.append(np.full(trials, 3.0), np.full(drugs - 1, 1.5))

    def conditional(u):
        total = np.sqrt(se**2 + np.exp(2 * u))
        height, *rest = linear_given(whole / total[:, :, None], y / total, 1.0, 0, wide)
        height = height - np.log(total).sum(axis=1) + u[:, 0]
        return height - np.log1p(np.exp(2 * u[:, 0]) / 0.25), *rest

    outer = {"log_spread": (-25.0, 12.0)}
    data = {"of_trial": of_trial, "of_drug": of_drug, "y": y, "se": se}
    inner = {"trial": (trials,), "effect": (drugs - 1,)}
    return nested(_network, outer, inner, data, conditional, 801)


def _whitened(theta, data):
    kernel = jnp.exp(-0.5 * data["gap"] ** 2 * jnp.exp(-2 * theta["log_reach"]))
    factor = jnp.linalg.cholesky(kernel + 1e-3 * jnp.eye(data["y"].size))
    mean = jnp.exp(theta["log_size"]) * (factor @ theta["z"])
    fit = -0.5 * jnp.sum(((data["y"] - mean) / data["sd"]) ** 2)
    prior = around(theta, z=(0, 1), log_size=(data["middle"], 0.8))
    return fit + prior + around(theta, log_reach=(-1, 0.8))


def whitened_curve(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A smooth curve by the standard normals that it is made of, its reach unknown."""
    count, unit = (4, 10, 25)[seed % 3], 10 ** rng.uniform(-2, 2)
    x, sd = np.sort(rng.uniform(0, 2, count)), unit * rng.uniform(0.1, 0.4)
    y = unit * np.sin(rng.uniform(1.5, 5) * x + rng.uniform(0, 6))
    y += sd * rng.normal(size=count)
    gap, middle = x[:, None] - x, np.log(unit)

    def conditional(u):
        kernel = np.exp(-0.5 * gap**2 * np.exp(-2 * u[:, :1, None]))
        factor = np.linalg.cholesky(kernel + 1e-3 * np.eye(count))
        design = np.exp(u[:, 1:, None]) * factor
        height, *rest = linear_given(design, y, sd, 0, 1)
        return height + normal(u, [-1, middle], 0.8), *rest

    outer = {"log_reach": (-6.4, 4.4), "log_size": (middle - 5.4, middle + 5.4)}
    data = {"gap": gap, "y": y, "sd": sd, "middle": middle}
    return nested(_whitened, outer, {"z": (count,)}, data, conditional, 61)


def _spotted(theta, data):
    turn = jnp.sin(jnp.pi * data["gap"] * jnp.exp(-theta["log_period"]))
    kernel = -2 * turn**2 - 0.5 * data["gap"] ** 2 * jnp.exp(-2 * theta["log_reach"])
    whole = jnp.exp(kernel) + data["sd"] ** 2 * jnp.eye(data["y"].size)
    factor = jnp.linalg.cholesky(whole)
    z = jax.scipy.linalg.solve_triangular(factor, data["y"], lower=True)
    fit = -0.5 * jnp.sum(z**2) - jnp.sum(jnp.log(jnp.diagonal(factor)))
    return fit + around(theta, log_period=(0, 0.7), log_reach=(1, 0.7))


def spotted_star(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Light of a star that turns, and whose spots change: several periods fit."""
    count, sd = (5, 9, 14)[seed % 3], rng.uniform(0.15, 0.4)
    x, period = np.sort(rng.uniform(0, 6, count)), np.exp(rng.normal(0, 0.4))
    gap = x[:, None] - x
    kernel = np.exp(-2 * np.sin(np.pi * gap / period) ** 2 - gap**2 / 20)
    factor = np.linalg.cholesky(kernel + sd**2 * np.eye(count))
    data = {"gap": gap, "y": factor @ rng.normal(size=count), "sd": sd}
    box = {"log_period": (-4.7, 4.7), "log_reach": (-3.7, 5.7)}
    return latticed(_spotted, box, data, 301)


def _which_matter(theta, data):
    near = data["squares"] @ jnp.exp(-2 * theta["log_reach"])
    whole = jnp.exp(-0.5 * near) + data["sd"] ** 2 * jnp.eye(data["y"].size)
    factor = jnp.linalg.cholesky(whole)
    z = jax.scipy.linalg.solve_triangular(factor, data["y"], lower=True)
    fit = -0.5 * jnp.sum(z**2) - jnp.sum(jnp.log(jnp.diagonal(factor)))
    return fit + around(theta, log_reach=(0.5, 1.2))


def which_matter(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """How far each of two or three predictors reaches: some do not matter at all."""
    count, size = ((4, 2), (10, 2), (16, 3))[seed % 3]
    x, sd = rng.normal(size=(count, size)), rng.uniform(0.15, 0.4)
    y = (
        np.sin(rng.uniform(1, 3) * x[:, 0])
        + 0.3 * x[:, 1]
        + sd * rng.normal(size=count)
    )
    data = {"squares": (x[:, None] - x) ** 2, "y": y, "sd": sd}
    box = {"log_reach": (np.full(size, -7.0), np.full(size, 8.0))}
    return latticed(_which_matter, box, data, (201, 161, 51)[seed % 3])


def _relatives(theta, data):
    share = jax.nn.sigmoid(theta["share"])
    own = jnp.eye(data["y"].size)
    factor = jnp.linalg.cholesky(share * data["shared"] + (1 - share) * own)
    rest = data["y"] - data["x"] @ theta["beta"]
    z = jax.scipy.linalg.solve_triangular(factor, rest, lower=True)
    z = z * jnp.exp(-theta["log_size"])
    fit = -0.5 * jnp.sum(z**2) - jnp.sum(jnp.log(jnp.diagonal(factor)))
    fit -= z.size * theta["log_size"]
    prior = around(theta, share=(0, 1.5), log_size=(data["middle"], 1))
    return fit + prior - 0.5 * jnp.sum((theta["beta"] / data["wide"]) ** 2)


def relatives(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A line over species, of which near relatives err alike: how much (Pagel)."""
    count, unit = (5, 12, 30)[seed % 3], 10 ** rng.uniform(-2, 3)
    shared, groups = np.eye(count), [[i] for i in range(count)]
    heights = np.sort(rng.uniform(0.05, 0.9, count - 1))[::-1]
    for height in heights:
        one, other = rng.choice(len(groups), 2, replace=False)
        for i in groups[one]:
            shared[i, groups[other]] = shared[groups[other], i] = height
        groups[one] = groups[one] + groups[other]
        del groups[other]
    x = np.column_stack([np.ones(count), rng.normal(50, 10, count)])
    true = np.linalg.cholesky(0.6 * shared + 0.4 * np.eye(count))
    y = unit * (0.05 * x[:, 1] + true @ rng.normal(size=count))
    wide, middle = unit * np.array([5.0, 0.2]), np.log(unit)

    def conditional(u):
        share = 1 / (1 + np.exp(-u[:, :1, None]))
        factor = np.linalg.cholesky(share * shared + (1 - share) * np.eye(count))
        design = np.linalg.solve(factor, np.broadcast_to(x, (len(u), *x.shape)))
        rows = np.linalg.solve(factor, np.broadcast_to(y[:, None], (len(u), count, 1)))
        height, *rest = linear_given(design, rows[:, :, 0], np.exp(u[:, 1]), 0, wide)
        height -= np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        return height + normal(u, [0, middle], [1.5, 1]), *rest

    data = {"shared": shared, "x": x, "y": y, "wide": wide, "middle": middle}
    outer = {"share": (-10.0, 10.0), "log_size": (middle - 6.7, middle + 6.7)}
    return nested(_relatives, outer, {"beta": (2,)}, data, conditional, 51)


def _sure_or_not(theta, data):
    cuts = theta["first"] + jnp.concatenate(
        [jnp.zeros(1), jnp.cumsum(jnp.exp(theta["log_gap"]))]
    )
    rows = 0.0
    for k, (mean, sd) in enumerate(
        ((0.0, 1.0), (theta["strength"], jnp.exp(theta["log_sd"])))
    ):
        z = (cuts - mean) / sd
        below = jnp.exp(log_ndtr(z))
        chances = jnp.diff(jnp.concatenate([jnp.zeros(1), below, jnp.ones(1)]))
        rows += data["y"][k] @ jnp.log(jnp.maximum(chances, 1e-7))
    prior = around(theta, strength=(1, 1), log_sd=(0.2, 0.4), first=(-0.7, 1))
    return rows + prior + around(theta, log_gap=(-0.7, 0.7))


def sure_or_not(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """How sure people are that they saw a thing, and where they divide."""
    count, cuts = ((10, 2), (30, 3), (200, 5))[seed % 3]
    at = np.sort(rng.normal(0.4, 0.8, cuts))
    y = [
        np.bincount(
            np.searchsorted(at, rng.normal(mean, sd, count)), minlength=cuts + 1
        )
        for mean, sd in ((0, 1), (rng.normal(1, 0.5), 1.3))
    ]
    shapes = {"strength": (), "log_sd": (), "first": (), "log_gap": (cuts - 1,)}
    middle = {"strength": 1.0, "first": -0.7, "log_gap": -0.7}
    return weighed(rng, _sure_or_not, shapes, {"y": np.array(y)}, {}, middle)
