"""Machines, wires, rivers and wells: calibrations of engineers, few readings each."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from scipy import special

from softcvi_experiments.verdict._coordinates import normal
from softcvi_experiments.verdict._lattice import latticed, linear_given, nested
from softcvi_experiments.verdict._posterior import RandomPosterior
from softcvi_experiments.verdict._priors import around
from softcvi_experiments.verdict._weighed import weighed

_SMALL = (0.00107857, -0.00976004, 0.05519968, -0.24991055, 0.99999193, -0.57721566)
_TOP = (1.0, 2.334733, 0.250621)
_BELOW = (1.0, 3.330657, 1.681534)


def misfit(data, mean):
    """Log density of normal noise with a known spread."""
    return -0.5 * jnp.sum(((data["y"] - mean) / data["sd"]) ** 2)


def _stress_cycles(theta, data):
    gap = data["stress"] / data["unit"] - jnp.exp(theta["log_limit"])
    above = gap > 0
    life = theta["life"] - theta["steep"] * jnp.log(jnp.where(above, gap, 1.0))
    z = (data["y"] - life) / data["sd"]
    failed = jnp.where(above, -0.5 * z**2, -jnp.inf)
    running = jnp.where(above, log_ndtr(-z), 0.0)
    prior = around(theta, log_limit=(-0.5, 0.7), life=(4, 2), steep=(2, 1))
    return jnp.sum(jnp.where(data["failed"], failed, running)) + prior


def stress_cycles(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Cycles until bars break, and a stress below which none does, some still whole."""
    count, unit = (6, 12, 30)[seed % 3], 10 ** rng.uniform(0, 3)
    stress = unit * np.sort(rng.uniform(0.6, 2.5, count))
    limit, sd = rng.uniform(0.4, 0.8), rng.uniform(0.3, 0.7)
    gap = np.maximum(stress / unit - limit, 1e-9)
    y = rng.normal(4, 0.7) - rng.uniform(1, 2.5) * np.log(gap)
    y += sd * rng.normal(size=count)
    stop = 6.0
    data = {"stress": stress, "unit": unit, "failed": y < stop, "sd": sd}
    data["y"] = np.minimum(y, stop)
    box = {"log_limit": (-5.5, 1.0), "life": (-8.0, 16.0), "steep": (-4.5, 8.5)}
    return latticed(_stress_cycles, box, data, 81)


def _unknown_sample(theta, data):
    x = jnp.concatenate([data["x"], theta["sample"]])
    prior = around(theta, sample=(0, 3 * data["unit_x"]), base=(0, 5 * data["unit_y"]))
    prior += around(theta, slope=(0, 3 * data["unit_y"] / data["unit_x"]))
    return misfit(data, theta["base"] + theta["slope"] * x) + prior


def unknown_sample(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Samples by an instrument whose own line is known from few standards."""
    count, samples = ((4, 1), (6, 2), (15, 3))[seed % 3]
    unit_x, unit_y = 10 ** rng.uniform(-2, 2, 2)
    x, sample = rng.uniform(-2, 2, count), rng.normal(0, 2, samples)
    sd, slope = (
        unit_y * rng.uniform(0.3, 0.8),
        rng.choice([-1, 1]) * rng.uniform(0.2, 2),
    )
    y = unit_y * (rng.normal(0, 3) + slope * np.r_[x, sample])
    y += sd * rng.normal(size=y.size)
    data = {"x": unit_x * x, "y": y, "sd": sd, "unit_x": unit_x, "unit_y": unit_y}

    def conditional(u):
        places = np.concatenate([np.tile(data["x"], (len(u), 1)), u], axis=1)
        design = np.stack([np.ones_like(places), places], axis=2)
        wide = [5 * unit_y, 3 * unit_y / unit_x]
        height, *rest = linear_given(design, y, sd, 0, wide)
        return height + normal(u, 0, 3 * unit_x), *rest

    far = np.full(samples, 20.0 * unit_x)
    inner = {"base": (), "slope": ()}
    points = (1001, 301, 81)[seed % 3]
    return nested(
        _unknown_sample, {"sample": (-far, far)}, inner, data, conditional, points
    )


def _crack(theta, data):
    place, depth = jax.nn.sigmoid(theta["place"]), jnp.exp(theta["log_depth"])
    bend = jnp.sin(jnp.pi * data["order"] * place) ** 2 * (1 + data["uneven"] * place)
    return misfit(data, depth * bend) + around(theta, place=(0, 1.5), log_depth=(0, 1))


def crack(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Where a beam is cracked, by how its tones fall: nearly alike from both ends."""
    order, uneven = np.arange(1.0, (3, 4, 7)[seed % 3]), rng.uniform(0, 0.1)
    place, sd = rng.uniform(0.1, 0.9), rng.uniform(0.1, 0.3)
    y = np.exp(rng.normal(0, 0.5)) * np.sin(np.pi * order * place) ** 2
    y = y * (1 + uneven * place) + sd * rng.normal(size=y.size)
    box = {"place": (-10.0, 10.0), "log_depth": (-6.7, 6.7)}
    data = {"order": order, "uneven": uneven, "y": y, "sd": sd}
    return latticed(_crack, box, data, 601)


def _parallel_wires(theta, data):
    wires = jnp.exp(theta["log_ohm"])
    total = jnp.stack([-jnp.log(jnp.sum(1 / wires)), jnp.log(jnp.sum(wires))])
    return misfit(data, total[data["kind"].astype(int)]) + around(
        theta, log_ohm=(data["middle"], 1)
    )


def parallel_wires(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Wires of which only totals were read, side by side and one after the other."""
    size, count = ((2, 2), (2, 6), (3, 9))[seed % 3]
    middle, sd = rng.normal(2, 3), rng.uniform(0.15, 0.3)
    wires = np.exp(rng.normal(middle, 0.8, size))
    kind = np.arange(count) % 2
    total = np.array([-np.log(np.sum(1 / wires)), np.log(np.sum(wires))])
    y = total[kind] + sd * rng.normal(size=count)
    box = {"log_ohm": (np.full(size, middle - 6.7), np.full(size, middle + 6.7))}
    data = {"kind": kind, "y": y, "sd": sd, "middle": middle}
    return latticed(_parallel_wires, box, data, (401, 401, 121)[seed % 3])


def _diode(theta, data):
    rise = jnp.expm1(data["volt"] / (0.02585 * jnp.exp(theta["log_ideal"])))
    current = (
        jnp.exp(theta["log_dark"]) * rise + jnp.exp(theta["log_leak"]) * data["volt"]
    )
    prior = around(theta, log_dark=(-20, 3), log_ideal=(0.3, 0.3), log_leak=(-13, 2))
    return misfit(data, jnp.log(current)) + prior


def diode(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Currents of a diode over ten powers of ten: three numbers, two of them linked."""
    count, sd = (4, 8, 25)[seed % 3], rng.uniform(0.1, 0.4)
    volt = np.linspace(0.1, 0.7, count)
    dark, ideal = np.exp(rng.normal(-20, 1.5)), np.exp(rng.normal(0.3, 0.15))
    current = dark * np.expm1(volt / (0.02585 * ideal))
    current += np.exp(rng.normal(-13, 1)) * volt
    data = {"volt": volt, "y": np.log(current) + sd * rng.normal(size=count), "sd": sd}
    shapes = {"log_dark": (), "log_ideal": (), "log_leak": ()}
    unit = {"log_dark": 0.5, "log_ideal": 0.02}
    middle = {"log_dark": np.log(dark), "log_ideal": np.log(ideal), "log_leak": -13.0}
    return weighed(rng, _diode, shapes, data, unit, middle)


def _rating_curve(theta, data):
    gap = data["level"] - theta["bed"]
    wet = jnp.all(gap > 0)
    flow = theta["log_a"] + theta["power"] * jnp.log(jnp.where(gap > 0, gap, 1.0))
    prior = around(theta, bed=(data["guess"], 1), log_a=(0, 3), power=(1.7, 0.5))
    return jnp.where(wet, misfit(data, flow) + prior, -jnp.inf)


def rating_curve(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Flow of a river by its level over a bed that nobody saw: below all readings."""
    count, sd = (3, 7, 25)[seed % 3], rng.uniform(0.1, 0.3)
    bed = rng.uniform(-50, 200)
    level = bed + np.exp(rng.normal(0.3, 0.7, count))
    y = rng.normal(1, 1) + rng.uniform(1.3, 2.2) * np.log(level - bed)
    y += sd * rng.normal(size=count)
    guess = bed + 0.7 * rng.normal()
    data = {"level": level, "y": y, "sd": sd, "guess": guess}

    def conditional(u):
        gap = level - u
        bend = np.log(np.maximum(gap, 1e-12))
        design = np.stack([np.ones_like(bend), bend], axis=2)
        height, *rest = linear_given(design, y, sd, [0, 1.7], [3, 0.5])
        height += normal(u, guess, 1)
        return np.where(gap.min(axis=1) > 0, height, -np.inf), *rest

    outer = {"bed": (guess - 7.0, min(guess + 7.0, level.min()))}
    inner = {"log_a": (), "power": ()}
    return nested(_rating_curve, outer, inner, data, conditional, 4001)


def _well(u):
    """The integral of exp(-u) / u up to infinity, by polynomials of a handbook."""
    low, high = jnp.minimum(u, 1.0), jnp.clip(u, 1.0, 80.0)
    small = jnp.polyval(jnp.array(_SMALL), low) - jnp.log(low)
    top, below = (
        jnp.polyval(jnp.array(_TOP), high),
        jnp.polyval(jnp.array(_BELOW), high),
    )
    return jnp.where(u < 1, small, top / below * jnp.exp(-high) / high)


def _pumped_well(theta, data):
    u = data["far"] ** 2 * jnp.exp(theta["log_store"] - theta["log_lead"])
    u = u / (4 * data["t"])
    drop = data["pumped"] / (4 * jnp.pi) * jnp.exp(-theta["log_lead"]) * _well(u)
    return misfit(data, drop) + around(theta, log_lead=(-6, 2), log_store=(-7, 2))


def pumped_well(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Water that falls around a pumped well: how well the ground leads, and stores."""
    count, far = (3, 6, 20)[seed % 3], rng.uniform(20, 80)
    t = np.exp(np.linspace(4, rng.uniform(6, 10), count))
    lead, store = np.exp(rng.normal(-6, 1)), np.exp(rng.normal(-7, 1))
    pumped = 4 * np.pi * lead
    y = special.exp1(far**2 * store / (4 * lead * t))
    sd = rng.uniform(0.1, 0.3)
    data = {"t": t, "far": far, "pumped": pumped, "sd": sd}
    data["y"] = y + sd * rng.normal(size=count)
    box = {"log_lead": (-19.0, 7.0), "log_store": (-20.0, 6.0)}
    return latticed(_pumped_well, box, data, 501)


def _falling(theta, data):
    speed = jnp.exp(theta["log_speed"])
    z = 9.81 * jax.nn.relu(data["t"] - theta["start"]) / speed
    # The log of the hyperbolic cosine, for times long after the start, too.
    way = speed**2 / 9.81 * (jnp.logaddexp(z, -z) - jnp.log(2.0))
    prior = around(theta, log_speed=(2.5, 0.8), start=(0, 0.7), height=(0, 30))
    return misfit(data, theta["height"] - way) + prior


def falling(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A fall through the air: when it began, and how fast it can be."""
    count, sd = (4, 8, 30)[seed % 3], rng.uniform(0.5, 2)
    t, start = np.sort(rng.uniform(0, 3, count)), rng.normal(0, 0.5)
    speed, height = np.exp(rng.normal(2.5, 0.5)), rng.normal(0, 20)

    def fallen(speed, start):
        z = 9.81 * np.maximum(t - start, 0) / speed
        return speed**2 / 9.81 * (np.logaddexp(z, -z) - np.log(2.0))

    y = height - fallen(speed, start) + sd * rng.normal(size=count)

    def conditional(u):
        rest = y + fallen(np.exp(u[:, :1]), u[:, 1:])
        ones = np.ones((len(u), count, 1))
        height, *others = linear_given(ones, rest, sd, 0, 30)
        return height + normal(u, [2.5, 0], [0.8, 0.7]), *others

    outer = {"log_speed": (-2.8, 7.8), "start": (-4.7, 4.7)}
    data = {"t": t, "y": y, "sd": sd}
    return nested(_falling, outer, {"height": ()}, data, conditional, 401)


def _simulator(theta, data):
    mean = jnp.exp(-jnp.exp(theta["log_rate"]) * data["x"]) + theta["wrong"]
    z = data["root"] @ theta["wrong"] * jnp.exp(-theta["log_size"])
    prior = -0.5 * jnp.sum(z**2) - z.size * theta["log_size"]
    return misfit(data, mean) + prior + around(theta, log_rate=(0, 1), log_size=(-2, 1))


def simulator_and_truth(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A simulator with an unknown number, and where it is wrong (Kennedy, O'Hagan)."""
    count, sd = (4, 8, 25)[seed % 3], rng.uniform(0.05, 0.2)
    x = np.sort(rng.uniform(0, 4, count))
    kernel = np.exp(-np.abs(x[:, None] - x) / 1.5)
    y = np.exp(-np.exp(rng.normal(0, 0.7)) * x) + 0.2 * np.sin(rng.uniform(1, 2) * x)
    y += sd * rng.normal(size=count)
    root = np.linalg.inv(np.linalg.cholesky(kernel))
    data = {"x": x, "y": y, "sd": sd, "root": root}

    def conditional(u):
        rest = y - np.exp(-np.exp(u[:, :1]) * x)
        design = np.exp(u[:, 1])[:, None, None] * np.linalg.inv(root)
        precision = np.swapaxes(design, 1, 2) @ design / sd**2 + np.eye(count)
        covariance = np.linalg.inv(precision)
        shift = np.einsum("nrk,nr->nk", design, rest) / sd**2
        z = np.einsum("nij,nj->ni", covariance, shift)
        height = 0.5 * np.sum(shift * z, axis=1) - 0.5 * np.sum(rest**2, 1) / sd**2
        height += normal(u, [0, -2], [1, 1]) - 0.5 * np.linalg.slogdet(precision)[1]
        mean = np.einsum("nij,nj->ni", design, z)
        variance = np.einsum("nij,njk,nik->ni", design, covariance, design)
        return height, mean, variance

    outer = {"log_rate": (-6.7, 6.7), "log_size": (-8.7, 4.7)}
    return nested(_simulator, outer, {"wrong": (count,)}, data, conditional, 81)
