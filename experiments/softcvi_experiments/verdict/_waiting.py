"""Waiting, wearing out and failing: queues, machines, detectors and software."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, log_ndtr, logsumexp
from scipy import special

from softcvi.targets import UnconstrainedSpace, positive
from softcvi_experiments.verdict._lattice import latticed, nested
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._priors import around
from softcvi_experiments.verdict._weighed import raw_design, weighed


def _tills(theta, data):
    come, serve = theta["come"], theta["serve"]
    rows = data["came"] * jnp.log(come) - data["open"] * come
    rows += data["served"] * jnp.log(serve) - data["busy"] * serve
    stable = jnp.all(come < serve)
    return jnp.where(stable, jnp.sum(rows), -jnp.inf)


def tills(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Tills at which customers come less often than they can be served, for sure."""
    count, unit = (1, 4, 15)[seed % 3], 10 ** rng.uniform(-2, 2)
    serve = unit * rng.uniform(0.8, 1.5, count)
    come = serve * rng.uniform(0.7, 1.1, count)
    open_for, busy = rng.uniform(3, 12, (2, count)) / unit
    came = rng.poisson(come * open_for) + 1.0
    served = rng.poisson(serve * busy) + 1.0
    data = {"came": came, "open": open_for, "served": served, "busy": busy}
    x = unit * np.linspace(0, 8, 8001)[1:]
    parts = []
    for shape, rate in ((came, open_for), (served, busy)):
        height = shape[:, None] * np.log(x) - rate[:, None] * x
        parts.append(np.exp(height - height.max(axis=1, keepdims=True)))
    # Each has to be below, or above, the other one; halves are for the point itself.
    above = np.cumsum(parts[1][:, ::-1], axis=1)[:, ::-1] - 0.5 * parts[1]
    below = np.cumsum(parts[0], axis=1) - 0.5 * parts[0]
    mean, variance = {}, {}
    for name, weights in (("come", parts[0] * above), ("serve", parts[1] * below)):
        weights = weights / weights.sum(axis=1, keepdims=True)
        mean[name] = weights @ x
        variance[name] = weights @ x**2 - mean[name] ** 2
    space = UnconstrainedSpace({"come": positive(), "serve": positive()})
    shapes = {"come": (count,), "serve": (count,)}
    target = density(_tills, shapes, data, space)
    return from_moments(target, mean, variance, "quadrature")


def _busy_spells(theta, data):
    load = jax.nn.sigmoid(theta["load"])
    n = data["n"]
    rows = (n - 1) * (jnp.log(load) + jnp.log(n)) - load * n - gammaln(n + 1)
    return jnp.sum(rows) + around(theta, load=(0, 1.5))


def busy_spells(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """How many were served without a break (Borel), at several counters."""
    counters, spells = (1, 5, 20)[seed % 3], 4
    load, n = rng.uniform(0.2, 0.95, counters), np.zeros((spells, counters))
    for i, j in np.ndindex(n.shape):
        waits = 1
        while waits and n[i, j] < 200:
            waits += int(rng.poisson(load[j])) - 1
            n[i, j] += 1
    grid = np.linspace(-12, 16, 7001)
    log_load = np.log(special.expit(grid))
    total = n.sum(axis=0)[:, None]
    height = (total - spells) * log_load - total * special.expit(grid)
    weights = special.softmax(height - 0.5 * (grid / 1.5) ** 2, axis=1)
    mean = weights @ grid
    target = density(_busy_spells, {"load": (counters,)}, {"n": n})
    right = {"load": mean}, {"load": weights @ grid**2 - mean**2}
    return from_moments(target, *right, "quadrature")


def _bugs(theta, data):
    many, quick = jnp.exp(theta["log_many"]), theta["log_quick"]
    rate = jnp.exp(quick)
    rows = theta["log_many"] + quick - rate * data["t"]
    total = many * -jnp.expm1(-rate * data["end"])
    prior = around(theta, log_many=(3, 2), log_quick=(data["guess"], 2))
    return jnp.sum(rows) - total + prior


def bugs(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Errors of a program that were found: nearly all, or the first of many."""
    end, many = 10 ** rng.uniform(0, 4), (6, 20, 80)[seed % 3]
    t = rng.exponential(end / rng.uniform(0.3, 2), many)
    t = np.sort(t[t < end])[:60]
    middle, t = -np.log(end), np.append(t, end / 2)[: max(t.size, 1)]
    data = {"t": t, "end": end, "guess": middle}
    box = {"log_many": (-7.0, 17.0), "log_quick": (middle - 14, middle + 12)}
    return latticed(_bugs, box, data, 501)


def _repairs(theta, data):
    power, scale = jnp.exp(theta["log_power"]), theta["log_scale"]
    log_t, log_end = data["log_t"] - scale, data["log_end"] - scale
    rows = theta["log_power"] - scale + (power - 1) * log_t
    prior = around(theta, log_power=(0, 0.7), log_scale=(data["guess"], 2))
    return jnp.sum(rows) - jnp.sum(jnp.exp(power * log_end)) + prior


def repairs(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Repairs of machines that get better or worse with age (a power law)."""
    machines, guess = (1, 4, 15)[seed % 3], rng.normal(0, 4)
    power, log_end, log_t = np.exp(0.4 * rng.normal()), guess + rng.uniform(0, 1.5), []
    for _ in range(machines):
        count = rng.poisson(np.exp(power * (log_end - guess)))
        log_t += list(log_end + np.log(rng.uniform(size=count + 1)) / power)
    data = {"log_t": np.array(log_t), "log_end": np.full(machines, log_end)}
    middle = guess + rng.normal()
    data["guess"] = np.array(middle)
    box = {"log_power": (-5.0, 5.0), "log_scale": (middle - 14, middle + 14)}
    return latticed(_repairs, box, data, 401)


def _bathtub(theta, data):
    t = data["t"]
    early = jnp.exp(theta["early"] - jnp.exp(theta["fade"]) * t)
    whole = jnp.exp(theta["early"] - theta["fade"])
    whole *= -jnp.expm1(-jnp.exp(theta["fade"]) * t)
    late = jnp.exp(theta["late"])
    rows = data["seen"] * jnp.log(early + 3 * late * t**2) - whole - late * t**3
    return jnp.sum(rows) + around(theta, early=(0, 1), fade=(1, 1), late=(-1, 1))


def bathtub(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Parts that fail when new or when old: a hazard that falls and rises."""
    count = (8, 20, 60)[seed % 3]
    new = rng.exponential(0.3, count)
    new = np.where(rng.uniform(size=count) < 0.3, new, 10.0)
    t = np.minimum(new, 1.3 * rng.weibull(3, count))
    data = {"t": np.minimum(t, 1.6), "seen": t < 1.6}
    shapes = dict.fromkeys(("early", "fade", "late"), ())
    return weighed(rng, _bathtub, shapes, data, {}, {"fade": 1.0, "late": -1.0})


def _sudden_risk(theta, data):
    after = jnp.maximum(data["t"] - jnp.maximum(theta["when"], 0.0), 0.0)
    before = data["t"] - after
    low, high = theta["log_before"], theta["log_after"]
    rows = data["seen"] * jnp.where(after > 0, high, low)
    rows -= before * jnp.exp(low) + after * jnp.exp(high)
    prior = around(theta, log_before=(-1, 1), log_after=(-1, 1), when=(1, 0.4))
    return jnp.sum(rows) + prior


def sudden_risk(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A hazard that jumps at an unknown time: a density that jumps at each death."""
    count, when = (5, 10, 20)[seed % 3], rng.uniform(0.5, 1.5)
    low, high = np.exp(rng.normal([-1.5, 0], 0.5))
    need = rng.exponential(size=count)
    t = np.where(need < low * when, need / low, when + (need - low * when) / high)
    end = rng.uniform(1.5, 3, count)
    t, seen, rate = np.minimum(t, end), t < end, np.linspace(-8, 5, 401)

    def one_rate(deaths, time):
        rows = deaths[:, None] * rate - time[:, None] * np.exp(rate)
        rows -= 0.5 * (rate + 1) ** 2
        total = special.logsumexp(rows, axis=1)
        weights = np.exp(rows - total[:, None])
        return total, weights @ rate, weights @ rate**2

    def conditional(u):
        after = np.maximum(t - np.maximum(u, 0), 0)
        late = np.sum(seen & (after > 0), axis=1)
        low = one_rate(seen.sum() - late, np.sum(t - after, axis=1))
        high = one_rate(late, np.sum(after, axis=1))
        mean, square = (np.stack([low[i], high[i]], axis=1) for i in (1, 2))
        height = low[0] + high[0] - 0.5 * ((u[:, 0] - 1) / 0.4) ** 2
        return height, mean, square - mean**2

    inner, data = {"log_before": (), "log_after": ()}, {"t": t, "seen": seen}
    return nested(_sudden_risk, {"when": (-2.0, 4.0)}, inner, data, conditional, 2001)


def _panel(theta, data):
    ill, well, die = (jnp.exp(theta[n]) for n in ("log_ill", "log_well", "log_die"))
    # Two states and death: the exponential of a matrix of two by two.
    a, d = -ill, -(well + die)
    root = jnp.sqrt((a - d) ** 2 + 4 * ill * well)
    slow = jnp.exp(0.5 * (a + d + root) * data["gap"])
    quick = jnp.exp(0.5 * (a + d - root) * data["gap"])
    even, odd = 0.5 * (slow + quick), (slow - quick) / root
    stay = jnp.stack([even + 0.5 * (a - d) * odd, even - 0.5 * (a - d) * odd])
    move = jnp.stack([ill * odd, well * odd])
    rows = jnp.stack([stay, move, jnp.maximum(1 - stay - move, 1e-12)])
    prior = around(theta, log_ill=(-1, 1), log_well=(-1, 1), log_die=(-1, 1))
    return jnp.sum(data["y"] * jnp.log(rows)) + prior


def check_ups(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Patients seen ill, well again or dead at check-ups, not when it happened."""
    ill, well, die = np.exp(rng.normal(-1, 0.5, 3))
    gap, people = np.array([0.5, 2.0]), (6, 20, 100)[seed % 3]
    flow = np.array([[-ill, ill, 0], [well, -well - die, die], [0, 0, 0.0]])
    roots, ways = np.linalg.eig(flow)
    y = np.zeros((3, 2, 2))
    for state, k in np.ndindex(2, 2):
        share = np.real(ways @ np.diag(np.exp(roots * gap[k])) @ np.linalg.inv(ways))
        share = np.clip(share[state], 0, 1)
        found = rng.multinomial(people, share / share.sum())
        y[:, state, k] = found[state], found[1 - state], found[2]
    names = ("log_ill", "log_well", "log_die")
    middle = dict.fromkeys(names, -1.0)
    shapes = dict.fromkeys(names, ())
    return weighed(rng, _panel, shapes, {"gap": gap, "y": y}, {}, middle)


def _masked(theta, data):
    rate = jnp.exp(theta["log_rate"])
    rows = jnp.log(data["could"] @ rate)
    return jnp.sum(rows) - data["time"] * jnp.sum(rate) + around(theta, log_rate=(0, 1))


def masked_causes(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Failures of which often only some parts could have been the cause."""
    parts, count = ((3, 10), (4, 25), (6, 60))[seed % 3]
    rate = np.exp(rng.normal(size=parts))
    cause = rng.choice(parts, count, p=rate / rate.sum())
    could = rng.uniform(size=(count, parts)) < 0.5
    could[np.arange(count), cause] = True
    time = rng.gamma(count) / rate.sum()
    data = {"could": could, "time": time}
    return weighed(rng, _masked, {"log_rate": (parts,)}, data, {})


def _wearing(theta, data):
    drift, log_sd = theta["drift"], theta["log_sd"]
    sd = jnp.exp(log_sd) * jnp.sqrt(data["t"])
    up = (1 - drift * data["t"]) / sd
    down = (-1 - drift * data["t"]) / sd
    # Those that still work have never reached one.
    back = 2 * drift * jnp.exp(-2 * log_sd) + log_ndtr(down) - log_ndtr(up)
    alive = log_ndtr(up) + jnp.log1p(-jnp.exp(jnp.minimum(back, -1e-6)))
    dead = -0.5 * up**2 - log_sd
    rows = jnp.where(data["seen"] > 0, dead, alive)
    return jnp.sum(rows) + around(theta, drift=(1, 1), log_sd=(-0.5, 0.7))


def wearing(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Parts that fail when their wear, a walk with a drift, first reaches a limit."""
    count = (4, 10, 40)[seed % 3]
    drift, sd = rng.uniform(0.5, 1.5), np.exp(rng.normal(-0.5, 0.3))
    t = rng.wald(1 / drift, 1 / sd**2, count)
    end = rng.uniform(0.8, 2.5, count)
    data = {"t": np.minimum(t, end), "seen": t < end}
    box = {"drift": (-5.7, 7.7), "log_sd": (-5.0, 4.2)}
    return latticed(_wearing, box, data, 241)


def _blinded(theta, data):
    rate, dead = jnp.exp(theta["log_rate"]), jnp.exp(theta["log_dead"])
    log_mean = jnp.log(data["time"]) + theta["log_rate"] - rate * dead
    rows = data["y"] * log_mean - jnp.exp(log_mean)
    prior = around(theta, log_rate=(data["guess"], 1.5))
    return jnp.sum(rows) + prior + around(theta, log_dead=(-data["guess"] - 1, 0.5))


def blinded_counter(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A counter that each event blinds: few events, or so many that it sees few."""
    guess, count = rng.normal(0, 4), (1, 3, 10)[seed % 3]
    rate, dead = np.exp(guess + 0.7 * rng.normal()), np.exp(-guess - 1)
    time = rng.uniform(5, 20, count) / np.exp(guess)
    data = {"time": time, "y": rng.poisson(time * rate * np.exp(-rate * dead))}
    data["guess"] = guess
    box = {"log_rate": (guess - 10, guess + 10), "log_dead": (-guess - 6, -guess + 4)}
    return latticed(_blinded, box, data, 601)


def _odds_alive(theta, data):
    log_t = jnp.log(data["t"])
    base = theta["level"] + jnp.exp(theta["log_steep"]) * log_t
    linear = base + data["x"] @ theta["beta"]
    dead = linear + theta["log_steep"] - log_t - 2 * jax.nn.softplus(linear)
    rows = jnp.where(data["seen"] > 0, dead, -jax.nn.softplus(linear))
    prior = around(theta, level=(0, 2), log_steep=(0.5, 0.5))
    return jnp.sum(rows) + prior + around(theta, beta=(0, data["prior_sd"]))


def odds_alive(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Times of failure whose odds, not hazards, are multiplied, in raw units."""
    count, size = ((20, 2), (40, 4), (90, 8))[seed % 3]
    z, x, unit = raw_design(rng, count, size, 3.0)
    linear = z[:, 1:] @ rng.normal(0, 0.7, size - 1)
    t = np.exp((rng.logistic(size=count) - linear) / 1.8)
    end = rng.uniform(0.5, 4, count)
    data = {"t": np.minimum(t, end), "seen": t < end, "x": x[:, 1:]}
    data["prior_sd"] = 2 * unit[1:]
    shapes = {"level": (), "log_steep": (), "beta": (size - 1,)}
    middle = {"log_steep": 0.5}
    return weighed(rng, _odds_alive, shapes, data, {"beta": unit[1:]}, middle)


def _step_stress(theta, data):
    rate = theta["base"] + theta["slope"] * data["stress"]
    rows = data["dead"] * rate - data["time"] * jnp.exp(rate)
    prior = around(theta, base=(data["guess"], 2), slope=(0, data["prior_sd"]))
    return jnp.sum(rows) + prior


def step_stress(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Lamps under more and more stress, and how long they last in use: far away."""
    guess, unit = rng.normal(-3, 4), 10 ** rng.uniform(0, 4)
    stress, lamps = np.array([2.0, 2.3, 2.6, 2.9]), (5, 15, 60)[seed % 3]
    dead, time = np.zeros(4), np.zeros(4)
    for k, value in enumerate(stress):
        life = rng.exponential(np.exp(-guess - 1.5 * (value - 2.4)), lamps)
        limit = np.exp(-guess) * 0.4
        dead[k], time[k] = np.sum(life < limit), np.minimum(life, limit).sum()
        lamps -= int(dead[k])
    data = {"stress": unit * stress, "dead": dead, "time": time + 1e-9}
    data |= {"guess": np.array(guess - 3), "prior_sd": np.array(2 / unit)}
    box = {"base": (guess - 18, guess + 12), "slope": (-14 / unit, 14 / unit)}
    return latticed(_step_stress, box, data, 601)


def _two_servers(theta, data):
    share = jax.nn.sigmoid(theta["share"])
    logs, t = theta["log_rate"], data["t"][:, None]
    rows = logs - jnp.exp(logs) * t
    rows = rows + jnp.log(jnp.stack([share, 1 - share]))
    prior = around(theta, log_rate=(data["guess"], 1.5), share=(0, 1))
    return jnp.sum(logsumexp(rows, axis=1)) + prior


def two_servers(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Service by one of two clerks without names, of whom one may be slower."""
    count, guess = (6, 15, 40)[seed % 3], rng.normal(0, 4)
    scale = np.exp(-guess) * rng.choice([0.3, 3.0], count)
    data = {"t": scale * rng.exponential(size=count), "guess": guess}
    low, high = np.full(2, guess - 10), np.full(2, guess + 10)
    box = {"log_rate": (low, high), "share": (-6.7, 6.7)}
    return latticed(_two_servers, box, data, 91)
