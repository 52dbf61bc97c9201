"""Effects within effects: normal given their scales, or one group after the other."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from scipy import special, stats

from softcvi_experiments.verdict._lattice import linear_given, nested
from softcvi_experiments.verdict._little_data import one_each
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
)
from softcvi_experiments.verdict._priors import around


def misfit(data, mean):
    return -0.5 * jnp.sum(((data["y"] - mean) / data["sd"]) ** 2)


def spread(theta, name, scale):
    z = theta[name] * jnp.exp(-theta[scale])
    return -0.5 * jnp.sum(z**2) - z.size * theta[scale]


def effects_given(logs, design, y, noise):
    """Height, means and variances of effects around zero with these log sds."""
    sd = np.exp(logs)
    height, mean, variance = linear_given(design * sd[:, None, :], y, noise, 0, 1)
    return height, mean * sd, variance * sd**2


def _scaled_given(sd, gram, shift):
    """As before, from sums over the rows instead of the rows themselves."""
    precision = gram * sd[:, :, None] * sd[:, None, :] + np.eye(len(gram))
    covariance = np.linalg.inv(precision)
    pull = shift * sd
    mean = np.einsum("nij,nj->ni", covariance, pull)
    height = 0.5 * np.sum(mean * pull, axis=1)
    height -= 0.5 * np.linalg.slogdet(precision)[1]
    return height, mean * sd, np.diagonal(covariance, axis1=1, axis2=2) * sd**2


def _logs(u, wide, *counts):
    """Log sds of effects: first of those that have no scale of their own."""
    first = np.tile(np.log(wide), (len(u), 1))
    return np.concatenate([first, np.repeat(u, counts, axis=1)], axis=1)


def normal(u, mean, sd):
    return -0.5 * np.sum(((u - mean) / sd) ** 2, axis=1)


def _around_unit(unit, *names):
    middle = np.log(unit) - 0.5
    return dict.fromkeys(names, (middle - 6.0, middle + 6.0))


def _towns(theta, data):
    mean = theta["level"] + data["of_town"] @ theta["town"]
    mean += data["of_school"] @ theta["school"]
    fit = misfit(data, mean) + around(theta, level=(0, data["wide"]))
    fit += spread(theta, "town", "log_town") + spread(theta, "school", "log_school")
    middle = data["middle"]
    return fit + around(theta, log_town=(middle, 1), log_school=(middle, 1))


def towns(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Pupils of schools of towns: whose schools differ, or the towns themselves."""
    towns, each = ((3, 2), (6, 3), (9, 4))[seed % 3]
    unit, schools = 10 ** rng.uniform(-2, 3), towns * each
    of_school = np.kron(np.eye(schools), np.ones((2, 1)))
    of_town = np.kron(np.eye(towns), np.ones((2 * each, 1)))
    sd = unit * rng.uniform(0.4, 1)
    y = unit * (rng.normal() + of_town @ (rng.uniform(0.2, 1) * rng.normal(size=towns)))
    y += unit * of_school @ (rng.uniform(0.2, 1) * rng.normal(size=schools))
    data = {"of_town": of_town, "of_school": of_school, "sd": sd, "wide": 4 * unit}
    data |= {"y": y + sd * rng.normal(size=y.size), "middle": np.log(unit) - 0.5}
    design = np.column_stack([np.ones(y.size), of_town, of_school])

    def conditional(u):
        logs = _logs(u, [4 * unit], towns, schools)
        height, *rest = effects_given(logs, design, data["y"], sd)
        return height + normal(u, data["middle"], 1), *rest

    outer = _around_unit(unit, "log_town", "log_school")
    inner = {"level": (), "town": (towns,), "school": (schools,)}
    return nested(_towns, outer, inner, data, conditional, 31)


def _crossover(theta, data):
    mean = data["design"] @ theta["effect"] + data["of_patient"] @ theta["patient"]
    rest = (data["y"] - mean) * jnp.exp(-theta["log_sd"])
    fit = -0.5 * jnp.sum(rest**2) - rest.size * theta["log_sd"]
    fit += spread(theta, "patient", "log_patient")
    fit += around(theta, effect=(0, data["wide"]))
    return fit + around(
        theta, log_patient=(data["middle"], 1), log_sd=(data["middle"], 1)
    )


def crossover(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two drugs for each patient, one after the other, in both orders."""
    patients, unit = (4, 10, 40)[seed % 3], 10 ** rng.uniform(-2, 3)
    of_patient = np.tile(np.eye(patients), (2, 1))
    period = np.repeat([0.0, 1.0], patients)
    first = np.tile(np.arange(patients) % 2, 2)
    drug = np.where(period > 0, 1 - first, first)
    design = np.column_stack([np.ones(2 * patients), period, drug])
    y = design @ rng.normal(0, 1, 3) + rng.uniform(0.3, 1.5) * of_patient @ rng.normal(
        size=patients
    )
    y = unit * (y + rng.uniform(0.3, 1) * rng.normal(size=y.size))
    data = {"design": design, "of_patient": of_patient, "y": y, "wide": 4 * unit}
    data["middle"] = np.log(unit) - 0.5
    whole = np.concatenate([design, of_patient], axis=1)

    def conditional(u):
        logs = _logs(u[:, :1], np.full(3, 4 * unit), patients)
        height, *rest = effects_given(logs, whole, y, np.exp(u[:, 1]))
        return height + normal(u, data["middle"], 1), *rest

    outer = _around_unit(unit, "log_patient", "log_sd")
    inner = {"effect": (3,), "patient": (patients,)}
    return nested(_crossover, outer, inner, data, conditional, 41)


def _bulls(theta, data):
    value = theta["value"]
    rest = (data["y"] - theta["level"] - value) * data["seen"] / data["sd"]
    z = (data["root"] @ value) * jnp.exp(-theta["log_genes"])
    fit = -0.5 * (jnp.sum(rest**2) + jnp.sum(z**2)) - z.size * theta["log_genes"]
    wide, middle = data["wide"], data["middle"]
    return fit + around(theta, level=(0, wide), log_genes=(middle, 1))


def bulls(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """What animals hand on to their young, where only some were measured."""
    count, unit = (5, 15, 45)[seed % 3], 10 ** rng.uniform(-2, 2)
    hands_on = np.zeros((count, count))
    for young in range(3, count):
        hands_on[young, rng.choice(young, 2, replace=False)] = 0.5
    # Each value is half the sum of the parents' and a part of its own.
    own = np.where(hands_on.any(axis=1), np.sqrt(0.5), 1.0)
    root = (np.eye(count) - hands_on) / own[:, None]
    value = rng.uniform(0.4, 1.2) * np.linalg.solve(root, rng.normal(size=count))
    seen = (rng.uniform(size=count) < 0.7).astype(float)
    sd = unit * rng.uniform(0.5, 1)
    y = unit * (rng.normal() + value) + sd * rng.normal(size=count)
    data = {"y": y, "seen": seen, "root": root, "sd": sd, "wide": 4 * unit}
    data["middle"] = np.log(unit) - 0.5
    back = np.linalg.inv(root)
    design = seen[:, None] * np.column_stack([np.ones(count), back])

    def conditional(u):
        # Parts of their own are independent; values are sums of them.
        scale = np.exp(u)[:, :, None] * np.eye(count)
        precision = np.eye(count + 1) / (4 * unit) ** 2
        precision = np.broadcast_to(precision, (len(u), *precision.shape)).copy()
        precision[:, 1:, 1:] = np.linalg.inv(scale**2)
        precision += design.T @ design / sd**2
        covariance = np.linalg.inv(precision)
        shift = design.T @ (seen * y) / sd**2
        mean = covariance @ shift
        height = 0.5 * mean @ shift - 0.5 * np.linalg.slogdet(precision)[1]
        height -= count * u[:, 0]
        whole = np.eye(count + 1)
        whole[1:, 1:] = back
        spread = np.einsum("ij,njk,ik->ni", whole, covariance, whole)
        return height + normal(u, data["middle"], 1), mean @ whole.T, spread

    outer = _around_unit(unit, "log_genes")
    inner = {"level": (), "value": (count,)}
    return nested(_bulls, outer, inner, data, conditional, 301)


def _age_and_year(theta, data):
    mean = (
        theta["level"] + data["of_age"] @ theta["age"] + data["of_year"] @ theta["year"]
    )
    fit = misfit(data, mean) + around(theta, level=(0, 5))
    fit += spread(theta, "age", "log_age") + spread(theta, "year", "log_year")
    return fit + around(theta, log_age=(-1, 1), log_year=(-1, 1))


def age_and_year(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Rates by age and by year, each a walk whose steps are the parameters."""
    ages, years = ((3, 3), (6, 8), (12, 20))[seed % 3]
    of_age = np.kron(np.tri(ages)[:, 1:], np.ones((years, 1)))
    of_year = np.tile(np.tri(years)[:, 1:], (ages, 1))
    steps = [rng.uniform(0.1, 0.8) * rng.normal(size=n - 1) for n in (ages, years)]
    y = rng.normal() + of_age @ steps[0] + of_year @ steps[1]
    sd = rng.uniform(0.4, 1.2)
    data = {"of_age": of_age, "of_year": of_year, "sd": sd}
    data["y"] = y + sd * rng.normal(size=y.size)
    design = np.column_stack([np.ones(y.size), of_age, of_year])
    gram, shift = design.T @ design / sd**2, design.T @ data["y"] / sd**2

    def conditional(u):
        scale = np.exp(_logs(u, [5.0], ages - 1, years - 1))
        height, *rest = _scaled_given(scale, gram, shift)
        return height + normal(u, -1, 1), *rest

    outer = dict.fromkeys(("log_age", "log_year"), (-7.5, 5.5))
    inner = {"level": (), "age": (ages - 1,), "year": (years - 1,)}
    return nested(_age_and_year, outer, inner, data, conditional, 41)


def _fields(theta, data):
    mean = theta["level"] + data["of_row"] @ theta["row"]
    mean += data["of_column"] @ theta["column"] + data["of_cell"] @ theta["cell"]
    fit = misfit(data, mean) + around(theta, level=(0, 5))
    for name in ("row", "column", "cell"):
        fit += spread(theta, name, "log_" + name)
    logs = ("log_row", "log_column", "log_cell")
    return fit + around(theta, **dict.fromkeys(logs, (-0.5, 0.8)))


def fields_of_trials(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Rows and columns of a field, and what is special to their crossings."""
    rows, columns = ((2, 2), (3, 4), (5, 6))[seed % 3]
    cells = rows * columns
    parts = {
        "of_row": np.kron(np.eye(rows), np.ones((2 * columns, 1))),
        "of_column": np.tile(np.kron(np.eye(columns), np.ones((2, 1))), (rows, 1)),
        "of_cell": np.kron(np.eye(cells), np.ones((2, 1))),
    }
    design = np.column_stack([np.ones(2 * cells), *parts.values()])
    sd = rng.uniform(0.3, 0.8)
    counts = rows, columns, cells
    effects = [rng.uniform(0.2, 1) * rng.normal(size=n) for n in counts]
    y = design @ np.concatenate([[rng.normal()], *effects])
    data = parts | {"y": y + sd * rng.normal(size=y.size), "sd": sd}
    gram, shift = design.T @ design / sd**2, design.T @ data["y"] / sd**2

    def conditional(u):
        scale = np.exp(_logs(u, [5.0], *counts))
        height, *rest = _scaled_given(scale, gram, shift)
        return height + normal(u, -0.5, 0.8), *rest

    outer = dict.fromkeys(("log_row", "log_column", "log_cell"), (-5.5, 4.5))
    inner = {"level": (), "row": (rows,), "column": (columns,), "cell": (cells,)}
    return nested(_fields, outer, inner, data, conditional, 17)


def _bare_groups(theta, data):
    mean = theta["level"] + jnp.exp(theta["log_tau"]) * (data["of"] @ theta["z"])
    fit = misfit(data, mean) - 0.5 * jnp.sum(theta["z"] ** 2)
    return fit + around(theta, level=(0, 5), log_tau=(0, 1.5))


def known_groups(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Well-known groups in units of their spread: a ridge where data are strong."""
    count, each = ((2, 8), (8, 6), (25, 4))[seed % 3]
    of = np.kron(np.eye(count), np.ones((each, 1)))
    sd, tau = rng.uniform(0.1, 0.5), np.exp(rng.normal(0, 0.7))
    y = rng.normal() + tau * of @ rng.normal(size=count)
    data = {"of": of, "y": y + sd * rng.normal(size=y.size), "sd": sd}

    def conditional(u):
        scaled = np.exp(u)[:, :, None] * of
        design = np.concatenate([np.ones((len(u), len(of), 1)), scaled], axis=2)
        wide = np.append(5.0, np.ones(count))
        height, *rest = linear_given(design, data["y"], sd, 0, wide)
        return height + normal(u, 0, 1.5), *rest

    outer, inner = {"log_tau": (-10.0, 10.0)}, {"level": (), "z": (count,)}
    return nested(_bare_groups, outer, inner, data, conditional, 401)


def _judges(theta, data):
    linear = theta["judge"]
    rows = data["y"] * log_ndtr(linear) + (data["n"] - data["y"]) * log_ndtr(-linear)
    z = (linear - theta["mu"]) * jnp.exp(-theta["log_tau"])
    fit = jnp.sum(rows) - 0.5 * jnp.sum(z**2) - z.size * theta["log_tau"]
    return fit + around(theta, mu=(0, 1), log_tau=(-0.5, 0.7))


def strict_judges(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """How strict judges are who saw few cases each (probit)."""
    count = (3, 10, 30)[seed % 3]
    n, linear = rng.integers(1, 9, count), rng.normal(0, rng.uniform(0.2, 1), count)
    y = rng.binomial(n, stats.norm.cdf(rng.normal(0, 0.5) + linear))
    data = {"y": y, "n": n}

    def mills(x):
        return np.exp(-0.5 * x**2 - special.log_ndtr(x)) / np.sqrt(2 * np.pi)

    def slope(eta):
        return y * mills(eta) - (n - y) * mills(-eta)

    def bend(eta):
        up, down = mills(eta), mills(-eta)
        return -y * up * (eta + up) - (n - y) * down * (down - eta)

    def height(eta):
        up, down = special.log_ndtr(eta), special.log_ndtr(-eta)
        return y[:, None] * up + (n - y)[:, None] * down

    def conditional(u):
        mu, tau = u[:, :1] + np.zeros(count), np.exp(u[:, 1:]) + np.zeros(count)
        reach = 12 + 3 * tau
        total, *rest = one_each(mu, tau, reach, slope, bend, height, wide=True)
        top = total.sum(axis=1) + normal(u, [0, -0.5], [1, 0.7])
        return top, *rest

    outer = {"mu": (-6.8, 6.8), "log_tau": (-5.2, 3.2)}
    return nested(_judges, outer, {"judge": (count,)}, data, conditional, 31)


def _wild_studies(theta, data):
    scale = jnp.exp(-theta["log_tau"])
    z = (theta["study"] - theta["mu"]) * scale
    prior = -2 * jnp.sum(jnp.log1p(z**2 / 3)) - z.size * theta["log_tau"]
    fit = misfit(data, theta["study"])
    return fit + prior + around(theta, mu=(0, 2), log_tau=(-0.5, 0.8))


def wild_studies(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Studies of which a few are far from the others: t effects, centred."""
    count = (3, 8, 20)[seed % 3]
    sd = rng.uniform(0.2, 0.8, count)
    effect = rng.normal() + rng.uniform(0.1, 0.8) * rng.standard_t(2, count)
    y = effect + sd * rng.normal(size=count)
    data = {"y": y, "sd": sd}
    nodes = np.linspace(-7, 7, 281)

    def conditional(u):
        eta = y[:, None] + sd[:, None] * nodes
        z = (eta - u[:, :1, None]) * np.exp(-u[:, 1:, None])
        rows = -0.5 * nodes**2 - 2 * np.log1p(z**2 / 3)
        total = special.logsumexp(rows, axis=2)
        weights = np.exp(rows - total[:, :, None])
        mean = np.sum(weights * eta, axis=2)
        variance = np.sum(weights * (eta - mean[:, :, None]) ** 2, axis=2)
        height = total.sum(axis=1) - count * u[:, 1]
        return height + normal(u, [0, -0.5], [2, 0.8]), mean, variance

    outer = {"mu": (-13.5, 13.5), "log_tau": (-4.0, 4.5)}
    return nested(_wild_studies, outer, {"study": (count,)}, data, conditional, 41)
