"""Regressions with odd designs, links, losses and limits: few rows and many."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, log_ndtr, ndtr
from scipy import special

from softcvi_experiments.verdict._coordinates import each, normal, turned
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


def _born_when(theta, data):
    mean = data["ages"] @ theta["age"] + data["periods"] @ theta["period"]
    mean += data["cohorts"] @ theta["cohort"] + theta["level"]
    rest = (data["y"] - mean) * jnp.exp(-theta["log_sd"])
    fit = -0.5 * jnp.sum(rest**2) - rest.size * theta["log_sd"]
    wide = data["wide"]
    prior = around(theta, age=(0, wide), period=(0, wide), cohort=(0, wide))
    return fit + prior + around(theta, level=(0, 3 * wide), log_sd=(0, 0.4))


def born_when(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Effects of age, year and year of birth, the last of which is year less age."""
    ages, periods = ((2, 2), (4, 3), (7, 6))[seed % 3]
    rows = np.array(list(np.ndindex(ages, periods)))
    cohort = rows[:, 1] - rows[:, 0] + ages - 1
    parts = [np.eye(ages)[rows[:, 0]], np.eye(periods)[rows[:, 1]]]
    parts.append(np.eye(ages + periods - 1)[cohort])
    wide, sizes = 10 ** rng.uniform(0.2, 0.6), [ages, periods, ages + periods - 1]
    y = sum(
        part @ rng.normal(0, 1.5, size) for part, size in zip(parts, sizes, strict=True)
    )
    y = y + rng.normal(0, 3) + np.exp(rng.normal(0, 0.3)) * rng.normal(size=len(rows))
    design = np.column_stack([*parts, np.ones(len(rows))])
    prior_sd = np.append(np.full(sum(sizes), wide), 3 * wide)

    def conditional(u):
        many = np.broadcast_to(design, (len(u), *design.shape))
        height, *rest = linear_given(many, y, np.exp(u[:, 0]), 0, prior_sd)
        return height + normal(u, 0, 0.4), *rest

    names = ("ages", "periods", "cohorts")
    data = dict(zip(names, parts, strict=True)) | {"y": y, "wide": wide}
    inner = {"age": (ages,), "period": (periods,), "cohort": (sizes[2],), "level": ()}
    outer = {"log_sd": (-3.0, 3.0)}
    return nested(_born_when, outer, inner, data, conditional, 301)


def _truncated_powers(theta, data):
    fit = _misfit(data, data["powers"] @ theta["beta"] + data["knots"] @ theta["knot"])
    z = theta["knot"] * jnp.exp(-theta["log_size"])
    fit -= 0.5 * jnp.sum(z**2) + z.size * theta["log_size"]
    prior = -0.5 * jnp.sum((theta["beta"] / data["wide"]) ** 2)
    return fit + prior + around(theta, log_size=(data["middle"], 1.5))


def truncated_powers(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A curve of parabolas that meet at knots, in the units of a raw predictor."""
    count, knots = ((8, 3), (15, 6), (60, 15))[seed % 3]
    unit, scale = 10 ** rng.uniform(-1, 2), 10 ** rng.uniform(-2, 2)
    x = np.sort(rng.uniform(0, 4, count))
    at = np.linspace(0, 4, knots + 2)[1:-1]
    sd = rng.uniform(0.1, 0.4) * scale
    y = scale * (np.sin(rng.uniform(0.8, 2.5) * x) + 0.3 * x) + sd * rng.normal(
        size=count
    )
    powers = np.stack([np.ones(count), unit * x, (unit * x) ** 2], axis=1)
    above = np.maximum(unit * (x[:, None] - at), 0) ** 2
    wide = 5 * scale / np.array([1, unit, unit**2])
    middle = np.log(scale / unit**2)
    whole = np.concatenate([powers, above], axis=1)

    def conditional(u):
        logs = np.repeat(u, knots, axis=1)
        logs = np.concatenate([np.tile(np.log(wide), (len(u), 1)), logs], axis=1)
        size = np.exp(logs)
        height, mean, variance = linear_given(whole * size[:, None], y, sd, 0, 1)
        height += normal(u, middle, 1.5)
        return height, mean * size, variance * size**2

    data = {"powers": powers, "knots": above, "y": y, "sd": sd, "wide": wide}
    data["middle"] = middle
    outer = {"log_size": (middle - 9, middle + 9)}
    inner = {"beta": (3,), "knot": (knots,)}
    return nested(_truncated_powers, outer, inner, data, conditional, 301)


def _relative_risk(theta, data):
    log_p = theta["base"] + data["x"] @ theta["slope"]
    inside = jnp.all(log_p < 0)
    safe = jnp.where(log_p < 0, log_p, -1.0)
    rows = data["y"] * safe + (data["n"] - data["y"]) * jnp.log(-jnp.expm1(safe))
    fit = jnp.sum(rows) + around(theta, base=(-1, 1.5), slope=(0, 1))
    return jnp.where(inside, fit, -jnp.inf)


def relative_risk(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Chances with a log link, where no row may get one above one (log binomial)."""
    count, size, most = ((6, 1, 1), (15, 2, 2), (40, 2, 3))[seed % 3]
    x = rng.normal(size=(count, size))
    log_p = x @ rng.normal(0, 0.3, size)
    p = np.exp(log_p - log_p.max() - rng.uniform(0.01, 0.2))
    n = rng.integers(1, most + 1, count)
    data = {"x": x, "y": rng.binomial(n, p), "n": n}
    far = np.full(size, 6.7)
    box = {"base": (-11.0, 2.0), "slope": (-far, far)}
    return latticed(_relative_risk, box, data, (801, 161, 161)[seed % 3])


def _unknown_power(theta, data):
    p = theta["power"]
    flat = jnp.abs(p) < 1e-3
    safe = jnp.where(flat, 1.0, p)
    log_x = jnp.log(data["x"] / data["unit"])
    bend = jnp.where(flat, log_x + p * log_x**2 / 2, jnp.expm1(safe * log_x) / safe)
    prior = around(theta, power=(0, 1.5), base=(0, data["wide"]))
    mean = theta["base"] + theta["slope"] * bend
    return _misfit(data, mean) + prior + around(theta, slope=(0, data["wide"]))


def unknown_power(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A line over a power of a predictor, and which power (Box and Tidwell)."""
    count, unit = (4, 9, 30)[seed % 3], 10 ** rng.uniform(-2, 3)
    scale = 10 ** rng.uniform(-2, 2)
    log_x, sd = rng.normal(0, 0.7, count), scale * rng.uniform(0.1, 0.5)
    power = rng.normal(0, 1)
    y = scale * (rng.normal() + rng.normal(0, 1.5) * np.expm1(power * log_x) / power)
    y += sd * rng.normal(size=count)

    def conditional(u):
        flat = np.abs(u) < 1e-9
        bend = np.where(flat, log_x, np.expm1(u * log_x) / np.where(flat, 1, u))
        design = np.stack([np.ones_like(bend), bend], axis=2)
        height, *rest = linear_given(design, y, sd, 0, 3 * scale)
        return height + normal(u, 0, 1.5), *rest

    data = {"x": unit * np.exp(log_x), "unit": unit, "y": y, "sd": sd}
    data["wide"] = 3 * scale
    inner = {"base": (), "slope": ()}
    outer = {"power": (-10.0, 10.0)}
    return nested(_unknown_power, outer, inner, data, conditional, 1001)


def _jeffreys(theta, data):
    linear = data["x"] @ theta["beta"]
    rows = jax.nn.log_sigmoid(data["y"] * linear)
    log_w = jax.nn.log_sigmoid(linear) + jax.nn.log_sigmoid(-linear)
    # The largest weight is taken out, for none to be rounded to zero.
    top = jnp.max(log_w)
    root = data["x"] * jnp.exp(0.5 * (log_w - top))[:, None]
    size = theta["beta"].size
    return jnp.sum(rows) + 0.5 * (jnp.linalg.slogdet(root.T @ root)[1] + size * top)


def jeffreys(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Logistic regression, perhaps separated, with Jeffreys' prior (Firth)."""
    count = (4, 8, 20)[seed % 3]
    x = np.column_stack([np.ones(count), rng.normal(size=count)])
    y = np.sign(x @ [rng.normal(), rng.uniform(1, 3)] + rng.logistic(size=count))
    y[0], y[1] = 1, -1
    far = np.full(2, 90.0)
    return latticed(_jeffreys, {"beta": (-far, far)}, {"x": x, "y": y}, 801)


def _blurred_doses(theta, data):
    linear = theta["base"] + theta["slope"] * theta["dose"]
    rows = jax.nn.log_sigmoid(data["y"] * linear)
    blur = -0.5 * jnp.sum(((theta["dose"] - data["told"]) / data["blur"]) ** 2)
    return jnp.sum(rows) + blur + around(theta, base=(0, 2), slope=(0, 2))


def blurred_doses(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Who fell ill by a dose that each had only about (Berkson), and each dose."""
    count, blur = (3, 8, 25)[seed % 3], rng.uniform(0.3, 1)
    told = rng.normal(0, 1.2, count)
    dose = told + blur * rng.normal(size=count)
    y = np.sign(rng.normal() + rng.normal(0, 2) * dose + rng.logistic(size=count))
    x = np.linspace(-10, 10, 161)
    known = -0.5 * ((x - told[:, None]) / blur) ** 2

    def conditional(u):
        linear = u[:, :1] + u[:, 1:] * x
        rows = -np.logaddexp(0, -y[:, None] * linear[:, None, :]) + known
        total, *rest = each(rows, x)
        return total + normal(u, 0, 2), *rest

    data = {"told": told, "blur": blur, "y": y}
    outer = {"base": (-13.5, 13.5), "slope": (-13.5, 13.5)}
    return nested(_blurred_doses, outer, {"dose": (count,)}, data, conditional, 61)


def _bounded_loss(theta, data):
    z = (data["y"] - theta["base"] - theta["slope"] * data["x"]) / data["sd"]
    inside = jnp.minimum((z / 4) ** 2, 1.0)
    loss = jnp.sum(1 - (1 - inside) ** 3) * 16 / 6
    wide = 4 * data["unit"]
    return -loss + around(theta, base=(0, wide), slope=(0, wide))


def bounded_loss(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A line by a loss that gross errors no longer raise (Tukey): flat far away."""
    count, unit = (4, 8, 25)[seed % 3], 10 ** rng.uniform(-2, 3)
    x, sd = rng.normal(size=count), rng.uniform(0.2, 0.5)
    lines = rng.normal(0, 2, (2, 2))
    which = (rng.uniform(size=count) < 0.35).astype(int)
    y = lines[which, 0] + lines[which, 1] * x + sd * rng.normal(size=count)
    data = {"x": x, "y": unit * y, "sd": unit * sd, "unit": unit}
    far = 27.0 * unit
    box = {"base": (-far, far), "slope": (-far, far)}
    return latticed(_bounded_loss, box, data, 1001)


def _unknown_lasso(theta, data):
    rate = jnp.exp(theta["log_rate"])
    fit = _misfit(data, theta["effect"])
    prior = theta["effect"].size * theta["log_rate"]
    prior -= rate * jnp.sum(jnp.abs(theta["effect"]))
    return fit + prior + around(theta, log_rate=(0, 1))


def unknown_lasso(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Effects with a Laplace prior of unknown scale: a kink for each, a funnel."""
    size = (2, 7, 25)[seed % 3]
    sd = rng.uniform(0.5, 2, size)
    y = rng.laplace(0, rng.uniform(0.2, 2), size) + sd * rng.normal(size=size)

    def above(y, rate):
        # A normal that the prior has moved, cut off at zero.
        mean = y - rate * sd**2
        log_mass = special.log_ndtr(mean / sd)
        slope = np.exp(-0.5 * (mean / sd) ** 2 - log_mass) / np.sqrt(2 * np.pi)
        first = mean + sd * slope
        return log_mass + 0.5 * (mean / sd) ** 2, first, sd**2 + mean * first

    def conditional(u):
        log_up, up, up_square = above(y, np.exp(u))
        log_down, down, down_square = above(-y, np.exp(u))
        total = np.logaddexp(log_up, log_down)
        share = np.exp(log_up - total)
        first = share * up - (1 - share) * down
        second = share * up_square + (1 - share) * down_square
        height = total.sum(axis=1) + size * u[:, 0] + normal(u, 0, 1)
        return height, first, second - first**2

    outer = {"log_rate": (-7.0, 7.0)}
    data = {"y": y, "sd": sd}
    return nested(_unknown_lasso, outer, {"effect": (size,)}, data, conditional, 601)


def _never_falling(theta, data):
    x = theta["mean"]
    rising = jnp.all(x[1:] >= x[:-1])
    prior = around(theta, mean=(data["middle"], 2 * data["unit"]))
    return jnp.where(rising, _misfit(data, x) + prior, -jnp.inf)


def never_falling(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Answers to rising doses, none of which may be below the one before."""
    size, unit = (2, 6, 20)[seed % 3], 10 ** rng.uniform(-2, 2)
    middle = unit * rng.normal(0, 10)
    sd = unit * rng.uniform(0.3, 1.2, size)
    y = middle + unit * np.sort(rng.normal(0, 0.7, size)) + sd * rng.normal(size=size)
    x = np.linspace(-10, 10, 1001)
    rows = -0.5 * (((y - middle)[:, None] - unit * x) / sd[:, None]) ** 2
    rows -= 0.5 * (x / 2) ** 2

    def rising(now, before):
        with np.errstate(divide="ignore"):
            return np.log((now > before) + 0.5 * (now == before))

    _, mean, variance = chain_moments(x, rows, rising)
    data = {"y": y, "sd": sd, "middle": middle, "unit": unit}
    target = density(_never_falling, {"mean": (size,)}, data)
    right = {"mean": middle + unit * mean}, {"mean": unit**2 * variance}
    return from_moments(target, *right, "quadrature")


def _defects(theta, data):
    linear = theta["base"] + theta["slope"] * data["year"]
    rows = data["y"] * linear - data["n"] * jax.nn.softplus(linear)
    return jnp.sum(rows) + around(theta, base=(0, 500), slope=(0, 0.5))


def defects_by_year(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Shares of bad parts by calendar year: a base that is two thousand years away."""
    years, n = ((3, 6), (8, 20), (25, 60))[seed % 3]
    year = 2000.0 + np.arange(years) + rng.integers(-10, 10)
    slope, middle = rng.normal(0, 0.15), year.mean()
    p = special.expit(rng.normal(-1.5, 0.7) + slope * (year - middle))
    data = {"year": year, "y": rng.binomial(n, p), "n": np.full(years, n)}

    def sites_of(u):
        return np.stack([u[:, 0] - u[:, 1] * middle, u[:, 1]], axis=1)

    box = np.array([-30.0, -3.5]), np.array([20.0, 3.5])
    shapes = {"base": (), "slope": ()}
    return turned(_defects, shapes, data, box, sites_of, 701)


def _sediment(theta, data):
    log_size = theta["base"] + theta["slope"] * data["depth"][:, None]
    size = jnp.exp(log_size)
    rows = gammaln(size.sum(axis=1)) - gammaln(size).sum(axis=1)
    rows += jnp.sum((size - 1) * data["log_share"], axis=1)
    return jnp.sum(rows) + around(theta, base=(1, 1.5), slope=(0, 1))


def sediment(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Shares of sand, silt and clay by the depth of a lake (a Dirichlet regression)."""
    count, kinds = ((5, 2), (10, 3), (40, 4))[seed % 3]
    depth = rng.normal(size=count)
    base, slope = rng.normal(1, 0.6, kinds), rng.normal(0, 0.4, kinds)
    shares = [rng.dirichlet(np.exp(base + slope * d)) for d in depth]
    data = {"depth": depth, "log_share": np.log(np.maximum(shares, 1e-6))}
    shapes = {"base": (kinds,), "slope": (kinds,)}
    return weighed(rng, _sediment, shapes, data, {}, {"base": 1.0})


def _tetrachoric(theta, data):
    link = jnp.tanh(theta["link"])
    # The chance that both are above, as an integral over one of them.
    one = theta["cut"][0] + data["steps"]
    density = jnp.exp(-0.5 * one**2) / jnp.sqrt(2 * jnp.pi) * data["weights"]
    away = (link * one - theta["cut"][1]) / jnp.sqrt(1 - link**2 + 1e-6)
    above, other = density @ ndtr(away), density @ ndtr(-away)
    upper = jnp.exp(log_ndtr(-theta["cut"]))
    rest = jnp.stack([above, other, upper[1] - above, 1 - upper[1] - other])
    rows = data["y"] @ jnp.log(jnp.maximum(rest, 1e-7))
    return rows + around(theta, cut=(0, 1), link=(0, 0.7))


def tetrachoric(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """How two skills go together, by how many passed both, one or none of two tests."""
    count = (6, 25, 150)[seed % 3]
    link, cut = np.tanh(rng.normal(0.5, 0.5)), rng.normal(0, 0.7, 2)
    z = rng.normal(size=(count, 2))
    z[:, 1] = link * z[:, 0] + np.sqrt(1 - link**2) * z[:, 1]
    up = z > cut
    y = [np.sum(up[:, 0] & up[:, 1]), np.sum(up[:, 0] & ~up[:, 1])]
    y += [np.sum(~up[:, 0] & up[:, 1]), np.sum(~up[:, 0] & ~up[:, 1])]
    nodes, weights = np.polynomial.legendre.leggauss(48)
    data = {"y": np.array(y), "steps": 4 * (nodes + 1), "weights": 4 * weights}
    box = {"cut": (np.full(2, -5.5), np.full(2, 5.5)), "link": (-4.0, 4.0)}
    return latticed(_tetrachoric, box, data, 61)
