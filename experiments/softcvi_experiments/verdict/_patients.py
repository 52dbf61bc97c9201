"""Patients, drugs, outbreaks and memories: what was taken, seen, told or reported."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln, logsumexp
from scipy import special

from softcvi_experiments.verdict._coordinates import allocations, each, normal
from softcvi_experiments.verdict._lattice import latticed, linear_given, nested, split
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._priors import around
from softcvi_experiments.verdict._weighed import weighed

_STEPS = 40


def _misfit(data, mean):
    return -0.5 * jnp.sum(((data["y"] - mean) / data["sd"]) ** 2)


def _drunk(sites, dose, width):
    """Log levels after each of equal steps in time, by Runge and Kutta's rule."""
    log_most, log_half, log_volume = sites
    most, half = jnp.exp(log_most), jnp.exp(log_half)

    def slope(level):
        return -most / (half + jnp.exp(level))

    def step(level, _):
        one = slope(level)
        two = slope(level + width / 2 * one)
        three = slope(level + width / 2 * two)
        four = slope(level + width * three)
        level = level + width / 6 * (one + 2 * two + 2 * three + four)
        return level, level

    begin = jnp.log(dose) - log_volume
    return jax.lax.scan(step, begin, None, length=_STEPS)[1]


def _alcohol(theta, data):
    sites = theta["log_most"], theta["log_half"], theta["log_volume"]
    levels = _drunk(sites, data["dose"], data["width"])
    prior = around(theta, log_most=(-1.5, 0.7), log_half=(-2, 1))
    prior += around(theta, log_volume=(3.6, 0.4))
    return _misfit(data, levels[data["at"].astype(int)]) + prior


def alcohol(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Alcohol in the blood, which is lost at a rate that it cannot exceed (an ODE)."""
    count, sd, width = (3, 6, 15)[seed % 3], rng.uniform(0.1, 0.3), 0.15
    at = np.sort(rng.choice(_STEPS, count, replace=False))
    sites = rng.normal([-1.5, -2, 3.6], [0.4, 0.6, 0.2])
    levels = np.asarray(_drunk(sites, 40.0, width), np.float64)
    # What single precision may leave differently is cut off.
    y = np.round(levels[at], 3) + sd * rng.normal(size=count)
    data = {"at": at, "dose": 40.0, "width": width, "y": y, "sd": sd}
    box = {"log_most": (-6.2, 3.2), "log_half": (-8.7, 4.7), "log_volume": (1.0, 6.2)}
    return latticed(_alcohol, box, data, 61)


def _late_effect(theta, data):
    gap = (jnp.exp(theta["log_link"]) - data["loss"]) * data["t"]
    near = jnp.abs(gap) < 1e-4
    safe = jnp.where(near, 1.0, gap)
    part = jnp.where(near, 1 - gap / 2, -jnp.expm1(-safe) / safe)
    there = jnp.exp(theta["log_link"]) * data["t"] * jnp.exp(-data["loss"] * data["t"])
    there = there * part
    share = there / (there + jnp.exp(theta["log_half"]))
    prior = around(theta, log_link=(-0.5, 1.2), log_half=(-1.5, 1))
    prior += around(theta, base=(0, 3 * data["unit"]), most=(0, 3 * data["unit"]))
    return _misfit(data, theta["base"] + theta["most"] * share) + prior


def late_effect(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """An effect that comes later than the drug is in the blood (an effect site)."""
    count, unit, loss = (5, 9, 25)[seed % 3], 10 ** rng.uniform(-1, 2), 0.3
    t, sd = np.linspace(0.2, 12, count), unit * rng.uniform(0.1, 0.3)

    def share(link, half):
        there = link / (link - loss) * (np.exp(-loss * t) - np.exp(-link * t))
        return there / (there + half)

    y = unit * (rng.normal() + rng.normal(0, 2) * share(rng.uniform(0.4, 2), 0.2))
    y += sd * rng.normal(size=count)
    data = {"t": t, "loss": loss, "unit": unit, "y": y, "sd": sd}

    def conditional(u):
        bend = share(np.exp(u[:, :1]) * (1 + 1e-9), np.exp(u[:, 1:]))
        design = np.stack([np.ones_like(bend), bend], axis=2)
        height, *rest = linear_given(design, y, sd, 0, 3 * unit)
        return height + normal(u, [-0.5, -1.5], [1.2, 1]), *rest

    outer = {"log_link": (-8.5, 7.5), "log_half": (-8.2, 5.2)}
    inner = {"base": (), "most": ()}
    return nested(_late_effect, outer, inner, data, conditional, 301)


def _missed_doses(theta, data):
    since = data["t"][:, None] - data["taken"]
    decay = jnp.exp(-jnp.exp(theta["log_loss"]) * jnp.maximum(since, 0.0))
    left = jnp.where(since > 0, decay, 0.0) @ data["ways"].T
    levels = jnp.log(left + 1e-3) - theta["log_volume"]
    rows = -0.5 * jnp.sum(((data["y"][:, None] - levels) / data["sd"]) ** 2, axis=0)
    prior = around(theta, log_loss=(-3, 0.8), log_volume=(0, 1))
    return logsumexp(rows + data["log_chance"]) + prior


def missed_doses(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Levels of a drug of which some doses may not have been taken."""
    count, sd, doses = (2, 4, 8)[seed % 3], rng.uniform(0.15, 0.4), 5
    taken, t = 24.0 * np.arange(doses), np.sort(rng.uniform(60, 120, count))
    ways = np.array(list(np.ndindex(*(2,) * doses)), float)
    log_chance = ways @ np.full(doses, np.log(0.7)) + (1 - ways) @ np.full(
        doses, np.log(0.3)
    )
    since = t[:, None] - taken
    left = np.where(since > 0, np.exp(-np.exp(rng.normal(-3, 0.5)) * since), 0)
    swallowed = rng.uniform(size=doses) < 0.7
    y = np.log(left @ swallowed + 1e-3) + rng.normal() + sd * rng.normal(size=count)
    data = {"t": t, "taken": taken, "ways": ways, "log_chance": log_chance}
    data |= {"y": y, "sd": sd}
    box = {"log_loss": (-8.5, 2.5), "log_volume": (-7.0, 7.0)}
    return latticed(_missed_doses, box, data, 401)


def _incubation(theta, data):
    log_one = jax.nn.log_sigmoid(theta["when"])
    log_other = jax.nn.log_sigmoid(-theta["when"])
    # What is left of the window, and what was after it.
    log_days = jnp.log(data["wide"] * jnp.exp(log_other) + data["after"])
    z = (log_days - theta["mean"]) * jnp.exp(-theta["log_sd"])
    rows = log_one + log_other - 0.5 * z**2 - log_days - theta["log_sd"]
    return jnp.sum(rows) + around(theta, mean=(1.5, 1), log_sd=(-0.7, 0.7))


def incubation(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Days until an illness shows, and when each patient caught it within some days."""
    count = (2, 8, 25)[seed % 3]
    wide, mean, sd = rng.uniform(0.5, 10, count), rng.normal(1.5, 0.4), 0.5
    after = np.exp(mean + sd * rng.normal(size=count)) - wide * rng.uniform(size=count)
    # Who fell ill within the window was infected before.
    wide, after = np.where(after < 0, wide + after, wide), np.maximum(after, 0.0)
    wide = np.maximum(wide, 0.3)
    x = np.linspace(-20, 20, 401)
    low, high = -np.logaddexp(0, -x), -np.logaddexp(0, x)
    log_days = np.log(wide[:, None] * np.exp(high) + after[:, None])

    def conditional(u):
        z = (log_days - u[:, 0, None, None]) * np.exp(-u[:, 1, None, None])
        rows = low + high - 0.5 * z**2 - log_days - u[:, 1, None, None]
        total, *rest = each(rows, x)
        return total + normal(u, [1.5, -0.7], [1, 0.7]), *rest

    data = {"wide": wide, "after": after}
    outer = {"mean": (-5.0, 8.0), "log_sd": (-5.5, 4.0)}
    return nested(_incubation, outer, {"when": (count,)}, data, conditional, 61)


def _late_reports(theta, data):
    log_p, log_q = (
        jax.nn.log_sigmoid(theta["quick"]),
        jax.nn.log_sigmoid(-theta["quick"]),
    )
    rate = jnp.exp(theta["log_rate"])
    told = data["reports"] * log_p + data["days"] * log_q
    seen = -jnp.expm1(data["waited"] * log_q)
    rows = (data["shape"] + data["cases"]) * theta["log_rate"]
    rows -= rate * (data["per"] + seen)
    return told + jnp.sum(rows) + around(theta, quick=(-1, 1))


def late_reports(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Cases of the last days, most of which nobody has reported yet (nowcasting)."""
    days, shape = (3, 10, 30)[seed % 3], rng.uniform(0.7, 3)
    p, rate = special.expit(rng.normal(-1, 0.7)), np.exp(rng.normal(1.5, 1.2, days))
    waited, told, total = np.arange(days, 0, -1), [], 0
    for wait, mean in zip(waited, rate, strict=True):
        delay = rng.geometric(p, rng.poisson(mean)) - 1
        delay = delay[delay < wait]
        told.append(delay.size)
        total += delay.sum()
    cases, per = np.array(told), shape / 5
    data = {"reports": cases.sum(), "days": total, "waited": waited, "cases": cases}
    data |= {"shape": shape, "per": per}
    shapes = shape + cases

    def conditional(u):
        log_p, log_q = -np.logaddexp(0, -u), -np.logaddexp(0, u)
        seen = per - np.expm1(waited * log_q)
        height = cases.sum() * log_p[:, 0] + total * log_q[:, 0]
        height -= np.log(seen) @ shapes
        mean = special.digamma(shapes) - np.log(seen)
        variance = np.tile(special.polygamma(1, shapes), (len(u), 1))
        return height + normal(u, -1, 1), mean, variance

    outer = {"quick": (-8.0, 6.0)}
    return nested(_late_reports, outer, {"log_rate": (days,)}, data, conditional, 801)


def _misremembered(theta, data):
    p = jax.nn.sigmoid(theta["exposed"])
    hit, miss = jax.nn.sigmoid(theta["true"]), jax.nn.sigmoid(theta["false"])
    told = p * hit + (1 - p) * miss
    rows = data["y"] * jnp.log(told) + (data["n"] - data["y"]) * jnp.log1p(-told)
    checked = data["hits"] * jax.nn.log_sigmoid(data["sign"] * theta["true"])
    checked += data["errors"] * jax.nn.log_sigmoid(data["sign"] * theta["false"])
    prior = around(theta, exposed=(-0.5, 1), true=(1.5, 0.8), false=(-1.5, 0.8))
    return jnp.sum(rows) + jnp.sum(checked) + prior


def misremembered(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Ill and healthy people who tell, often wrongly, what they were exposed to."""
    count, checked = ((20, 4), (60, 10), (400, 40))[seed % 3]
    told = special.expit(rng.normal([-0.2, -0.8], 0.5)) * 0.6 + 0.15
    n = np.full(2, count)
    hits, errors = rng.binomial(checked, 0.8), rng.binomial(checked, 0.2)
    data = {"y": rng.binomial(n, told), "n": n, "sign": np.array([1.0, -1.0])}
    data |= {"hits": np.array([hits, checked - hits])}
    data |= {"errors": np.array([errors, checked - errors])}
    shapes = {"exposed": (2,), "true": (), "false": ()}
    middle = {"true": 1.5, "false": -1.5}
    return weighed(rng, _misremembered, shapes, data, {}, middle)


def _memory_tree(theta, data):
    know, source, old, side = jax.nn.sigmoid(
        jnp.stack([theta["know"], theta["source"], theta["old"], theta["side"]])
    )
    unknown = (1 - know) * old
    guess = know * (1 - source)
    first = jnp.stack(
        [
            know * source + guess * side + unknown * side,
            guess * (1 - side) + unknown * (1 - side),
            (1 - know) * (1 - old),
        ]
    )
    second = jnp.stack(
        [
            guess * side + unknown * side,
            know * source + guess * (1 - side) + unknown * (1 - side),
            (1 - know) * (1 - old),
        ]
    )
    # New things are taken for new as often as old ones are known.
    third = jnp.stack(
        [
            (1 - know) * old * side,
            (1 - know) * old * (1 - side),
            know + (1 - know) * (1 - old),
        ]
    )
    rows = data["y"] * jnp.log(jnp.stack([first, second, third]))
    return jnp.sum(rows) + around(
        theta, know=(0, 1.2), source=(0, 1.2), old=(0, 1.2), side=(0, 1.2)
    )


def memory_tree(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """What was heard from whom: known, remembered, or guessed (a tree of processes)."""
    count = (6, 20, 100)[seed % 3]
    rows = [[0.6, 0.2, 0.2], [0.25, 0.5, 0.25], [0.15, 0.1, 0.75]]
    y = np.array([rng.multinomial(count, rng.dirichlet(8 * np.array(r))) for r in rows])
    shapes = dict.fromkeys(("know", "source", "old", "side"), ())
    return weighed(rng, _memory_tree, shapes, {"y": y}, {})


def _months(theta, data):
    size = jnp.exp(theta["log_size"])
    a, b = size * jax.nn.sigmoid(theta["mean"]), size * jax.nn.sigmoid(-theta["mean"])
    rows = data["y"] * (betaln(a + 1, b + data["month"] - 1) - betaln(a, b))
    rest = data["left"] * (betaln(a, b + data["month"][-1]) - betaln(a, b))
    return jnp.sum(rows) + rest + around(theta, mean=(-1, 1.2), log_size=(1.5, 1.5))


def months_to_pregnancy(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Months until couples expect a child: chances that differ, or are all the same."""
    couples, months = ((8, 3), (40, 6), (400, 12))[seed % 3]
    chance = rng.beta(1.2, 3.0, couples)
    t = rng.geometric(chance)
    month = np.arange(1.0, months + 1)
    y = np.array([np.sum(t == m) for m in month])
    data = {"y": y, "month": month, "left": couples - y.sum()}
    box = {"mean": (-9.5, 7.5), "log_size": (-8.5, 11.5)}
    return latticed(_months, box, data, 401)


def _readers(theta, data):
    def logs(x):
        return jax.nn.log_sigmoid(x), jax.nn.log_sigmoid(-x)

    parts = []
    for name, weight in (("sick", theta["share"]), ("well", -theta["share"])):
        yes, no = logs(theta[name])
        rows = data["y"] @ yes + (1 - data["y"]) @ no
        parts.append(rows + jax.nn.log_sigmoid(weight))
    fit = jnp.sum(jnp.logaddexp(*parts))
    for name in ("sick", "well", "share"):
        yes, no = logs(theta[name])
        one, other = data["prior_" + name]
        fit += jnp.sum(one * yes + other * no)
    return fit


def readers_of_scans(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Doctors who read scans, of which nobody knows the truth: all ways are summed."""
    scans, readers = ((5, 3), (9, 4), (13, 5))[seed % 3]
    sick = rng.uniform(size=scans) < 0.5
    hit, err = rng.beta(8, 2, readers), rng.beta(2, 8, readers)
    y = (rng.uniform(size=(scans, readers)) < np.where(sick[:, None], hit, err)) * 1.0
    priors = {"share": (2.0, 2.0), "sick": (2.0, 1.6), "well": (1.6, 2.0)}
    z = np.array(list(np.ndindex(*(2,) * scans)), float)
    ones = {
        "share": np.stack([z.sum(axis=1), scans - z.sum(axis=1)])[:, :, None],
        "sick": np.stack([z @ y, z @ (1 - y)]),
        "well": np.stack([(1 - z) @ y, (1 - z) @ (1 - y)]),
    }
    height, means, variances = np.zeros(len(z)), [], []
    for name, counts in ones.items():
        a, b = counts[0] + priors[name][0], counts[1] + priors[name][1]
        height = height + special.betaln(a, b).sum(axis=1)
        means.append(special.digamma(a) - special.digamma(b))
        variances.append(special.polygamma(1, a) + special.polygamma(1, b))
    found = allocations(height, np.hstack(means), np.hstack(variances))
    shapes = {"share": (), "sick": (readers,), "well": (readers,)}
    data = {"y": y} | {f"prior_{k}": np.array(v) for k, v in priors.items()}
    mean, variance = (split(values, shapes) for values in found)
    target = density(_readers, shapes, data)
    return from_moments(target, mean, variance, "sum over all ways")


def _why_they_left(theta, data):
    ill, gone = jnp.exp(theta["log_ill"]), jnp.exp(theta["log_gone"])
    link = jnp.exp(theta["log_link"])
    one, other = link * ill * data["t"], link * gone * data["t"]
    both = jnp.logaddexp(one, other)
    alive = -(both + jnp.log1p(-jnp.exp(-both))) / link
    event = jnp.where(data["ill"], theta["log_ill"] + one, theta["log_gone"] + other)
    rows = (1 + link) * alive + event
    middle = -data["log_unit"]
    return jnp.sum(rows) + around(
        theta, log_ill=(middle, 1), log_gone=(middle, 1), log_link=(0, 1)
    )


def why_they_left(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Times until illness in a study that people leave, perhaps for that."""
    count, log_unit = (4, 12, 60)[seed % 3], rng.normal(0, 3)
    shared = rng.gamma(1.0, size=count)
    times = [np.log1p(rng.exponential(size=count) / shared) * s for s in (1, 1.5)]
    t = np.minimum(*times) * np.exp(log_unit)
    data = {"t": t, "ill": times[0] < times[1], "log_unit": log_unit}
    box = {
        "log_ill": (-log_unit - 7, -log_unit + 7),
        "log_gone": (-log_unit - 7, -log_unit + 7),
        "log_link": (-7.0, 7.0),
    }
    return latticed(_why_they_left, box, data, 81)
