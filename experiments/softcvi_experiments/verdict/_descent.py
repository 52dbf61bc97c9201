"""Outbreaks and animals: shares that are made of a few unknown numbers."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from scipy import special

from softcvi.targets import UnconstrainedSpace, interval
from softcvi_experiments.verdict._lattice import latticed, nested
from softcvi_experiments.verdict._little_data import one_each
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._priors import around
from softcvi_experiments.verdict._weighed import weighed


def _dose_of_germs(theta, data):
    a, log_half = jnp.exp(theta["log_a"]), theta["log_half"]
    half = jnp.log(2.0) / a
    more = data["log_dose"] - log_half + half + jnp.log(-jnp.expm1(-half))
    none = -a * jax.nn.softplus(more)
    rows = data["y"] * jnp.log(-jnp.expm1(none)) + (data["n"] - data["y"]) * none
    return jnp.sum(rows) + around(theta, log_a=(-1, 0.8), log_half=(data["guess"], 3))


def dose_of_germs(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Volunteers who fell ill after doses of germs over many powers of ten."""
    guess, count = rng.uniform(3, 15), (3, 5, 8)[seed % 3]
    log_dose = guess + np.linspace(-6, 4, count)
    a = np.exp(rng.normal(-1, 0.4))
    share = 1 - (1 + np.exp(log_dose - guess) * np.expm1(np.log(2) / a)) ** -a
    n = rng.integers(3, 10, count)
    data = {"log_dose": log_dose, "n": n, "y": rng.binomial(n, share)}
    middle = guess + rng.normal()
    data["guess"] = np.array(middle)
    # Where nearly all are safe, the half dose is beyond any that was given.
    box = {"log_a": (-4.2, 5.0), "log_half": (middle - 21, middle + 21)}
    return latticed(_dose_of_germs, box, data, 401)


def _waned(theta, data):
    catch, lose = jnp.exp(theta["log_catch"]), jnp.exp(theta["log_lose"])
    share = -jnp.expm1(-(catch + lose) * data["age"]) * catch / (catch + lose)
    rows = data["y"] * jnp.log(share) + (data["n"] - data["y"]) * jnp.log1p(-share)
    return jnp.sum(rows) + around(theta, log_catch=(-3, 1.5), log_lose=(-4, 1.5))


def waned(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Blood tests by age: how quickly a disease is caught, and forgotten."""
    age, n = np.array([2, 6, 12, 25, 45, 70.0]), np.full(6, (8, 25, 150)[seed % 3])
    catch, lose = np.exp(rng.normal([-3, -4.5], 0.6))
    share = catch / (catch + lose) * -np.expm1(-(catch + lose) * age)
    data = {"age": age, "n": n, "y": rng.binomial(n, share)}
    box = {"log_catch": (-13.0, 4.0), "log_lose": (-15.0, 5.0)}
    return latticed(_waned, box, data, 401)


def _vaccine(theta, data):
    base = theta["base"]
    given = base + jnp.log(jax.nn.sigmoid(theta["risk"]))
    rows = data["y"][0] * base - data["time"][0] * jnp.exp(base)
    rows += data["y"][1] * given - data["time"][1] * jnp.exp(given)
    return jnp.sum(rows) + around(theta, base=(data["guess"], 1.5), risk=(0, 2))


def vaccine(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Cases with and without a vaccine, which does no harm, at several places."""
    count, unit = (1, 5, 20)[seed % 3], 10 ** rng.uniform(-6, 0)
    time = rng.uniform(2, 25, (2, count)) / unit
    base = np.log(unit) + 0.6 * rng.normal(size=count)
    risk = np.exp(base) * np.stack([np.ones(count), rng.uniform(0, 0.7, count)])
    y = rng.poisson(time * risk)
    data = {"y": y, "time": time, "guess": np.log(unit)}
    x = np.linspace(-9, 7, 301)[:, None]
    r = np.linspace(-14, 14, 401)[None, :]
    found: dict[str, list] = {"base": [], "risk": []}
    log_r = np.log(special.expit(r))
    for (a, b), (s, t) in zip(y.T, (time * unit).T, strict=True):
        height = (a + b) * x + b * log_r - np.exp(x) * (s + t * np.exp(log_r))
        height = height - 0.5 * ((x / 1.5) ** 2 + (r / 2) ** 2)
        weights = special.softmax(height)
        for name, values in (("base", x), ("risk", r)):
            middle = np.sum(weights * values)
            found[name].append((middle, np.sum(weights * (values - middle) ** 2)))
    mean, variance = (
        {name: np.array(values)[:, i] for name, values in found.items()} for i in (0, 1)
    )
    mean["base"] += np.log(unit)
    target = density(_vaccine, {"base": (count,), "risk": (count,)}, data)
    return from_moments(target, mean, variance, "quadrature")


def _nests(theta, data):
    log_day = jax.nn.log_sigmoid(theta["level"] + theta["slope"] * data["cover"])
    # Where there is no gap, the log of a day is taken and not used.
    lost = jnp.log(-jnp.expm1(jnp.maximum(data["gap"], 1.0) * log_day))
    rows = data["last_seen"] * log_day + jnp.where(data["gap"] > 0, lost, 0.0)
    prior = around(theta, level=(3, 1.5), slope=(0, data["prior_sd"]))
    return jnp.sum(rows) + prior


def nests(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Nests found lost some day since the last visit, by cover in raw units."""
    count, unit = (10, 30, 100)[seed % 3], 10 ** rng.uniform(-4, 4)
    cover, visit = rng.normal(size=count), rng.integers(2, 6, count)
    day = special.expit(rng.normal(3, 0.5) + rng.normal(0, 0.7) * cover)
    life = rng.geometric(1 - day)
    visits = np.minimum(life // visit, 25 // visit)
    last = visits * visit
    lost = life < 25 // visit * visit
    gap = np.where(lost, visit, 0).astype(float)
    data = {"cover": unit * cover, "last_seen": last, "gap": gap}
    data["prior_sd"] = 1.5 / unit
    box = {"level": (-8.0, 15.0), "slope": (-11 / unit, 11 / unit)}
    return latticed(_nests, box, data, 301)


def _diet(theta, data):
    share = jax.nn.softmax(jnp.append(theta["share"], 0.0))
    mean = share @ data["prey"]
    sd = jnp.sqrt(share**2 @ data["spread"] ** 2 + data["noise"] ** 2)
    rows = -0.5 * ((data["y"] - mean) / sd) ** 2 - jnp.log(sd)
    return jnp.sum(rows) + around(theta, share=(0, 1.5))


def diet(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """What a fox eats, by two isotopes of three or more kinds of prey on one line."""
    kinds = (3, 4, 5)[seed % 3]
    prey = np.outer(rng.permutation(kinds), rng.normal(1.5, 0.3, 2))
    prey += rng.normal(0, 0.4, (kinds, 2))
    share = rng.dirichlet(np.ones(kinds))
    y = share @ prey + 0.5 * rng.normal(size=(4, 2))
    data = {"prey": prey, "spread": np.full((kinds, 2), 0.4), "y": y, "noise": 0.5}
    return weighed(rng, _diet, {"share": (kinds - 1,)}, data, {})


def _band_returns(theta, data):
    live, shot = jax.nn.sigmoid(theta["live"]), jax.nn.sigmoid(theta["shot"])
    years = data["years"]
    share = live**years * shot * (1 - live)
    never = 1 - jnp.sum(share * data["open"], axis=1)
    rows = jnp.sum(data["y"] * jnp.log(share), axis=1) + data["none"] * jnp.log(never)
    return jnp.sum(rows) + around(theta, live=(0, 1.5), shot=(-1, 1.5))


def band_returns(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Rings of dead birds that hunters sent back, by years since ringing."""
    years, birds = 4, (15, 60, 300)[seed % 3]
    live, shot = rng.uniform(0.3, 0.8), rng.uniform(0.1, 0.6)
    y, none = np.zeros((years, years)), np.zeros(years)
    for row in range(years):
        share = live ** np.arange(years - row) * (1 - live) * shot
        found = rng.multinomial(birds, [*share, 1 - share.sum()])
        y[row, : years - row], none[row] = found[:-1], found[-1]
    shown = np.arange(years) < years - np.arange(years)[:, None]
    data = {"y": y, "none": none, "open": shown, "years": np.arange(years)}
    box = {"live": (-9.0, 9.0), "shot": (-10.0, 9.0)}
    return latticed(_band_returns, box, data, 301)


def _dispersal(theta, data):
    scale, p = theta["log_scale"], jnp.exp(theta["log_p"])
    square = 2 * (jnp.log(data["r"]) - scale)
    rows = theta["log_p"] - 2 * scale - (1 + p) * jax.nn.softplus(square)
    prior = around(theta, log_scale=(data["guess"], 1.5), log_p=(0, 1))
    return jnp.sum(rows) + prior


def dispersal(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """How far seeds fly: a heavy tail, or a wide scale without one (2Dt)."""
    count, guess = (4, 12, 60)[seed % 3], rng.normal(0, 4)
    p = np.exp(rng.normal(0, 0.5))
    r = np.exp(guess) * np.sqrt(rng.uniform(size=count) ** (-1 / p) - 1)
    data = {"r": r, "guess": guess + rng.normal()}
    box = {"log_scale": (data["guess"] - 10, data["guess"] + 10), "log_p": (-7.0, 7.5)}
    return latticed(_dispersal, box, data, 401)


def _clumps(theta, data):
    k, y = jnp.exp(theta["log_k"]), data["y"]
    x = theta["log_rate"]
    rows = gammaln(y + k) - gammaln(k) + k * theta["log_k"] + y * x
    rows -= (y + k) * jnp.logaddexp(theta["log_k"], x)
    return jnp.sum(rows) + around(theta, log_rate=(0, 2), log_k=(0, 1.5))


def clumps(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Parasites per host, of several kinds of host: most have none, a few many."""
    kinds, hosts = (1, 5, 20)[seed % 3], 8
    rate, k = np.exp(rng.normal(0.5, 1, kinds)), np.exp(rng.normal(-0.7, 0.7, kinds))
    y = rng.poisson(rate * rng.gamma(k, 1 / k, (hosts, kinds)))
    x, h = np.meshgrid(np.linspace(-9, 9, 241), np.linspace(-8.5, 8.5, 161))
    size = np.exp(h)
    mean, variance = {}, {}
    height = []
    for column in y.T:
        rows = hosts * (size * h - special.gammaln(size)) + column.sum() * x
        rows += sum(special.gammaln(size + value) for value in column)
        rows -= (column.sum() + hosts * size) * np.logaddexp(h, x)
        height.append(rows - 0.5 * ((x / 2) ** 2 + (h / 1.5) ** 2))
    weights = special.softmax(np.reshape(height, (kinds, -1)), axis=1)
    for name, values in (("log_rate", x.ravel()), ("log_k", h.ravel())):
        mean[name] = weights @ values
        variance[name] = weights @ values**2 - mean[name] ** 2
    target = density(_clumps, {"log_rate": (kinds,), "log_k": (kinds,)}, {"y": y})
    return from_moments(target, mean, variance, "quadrature")


def _two_watchers(theta, data):
    one, two = jax.nn.sigmoid(theta["keen"])
    both, first, second = one * two, one * (1 - two), (1 - one) * two
    log_n = theta["log_animals"]
    rates = log_n + jnp.log(jnp.stack([both, first, second]))
    rows = data["y"] @ rates - jnp.sum(jnp.exp(rates)) * data["days"]
    return rows + around(theta, keen=(0, 1.5), log_animals=(data["guess"], 2))


def two_watchers(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Animals seen by both, one or the other of two watchers, or nobody."""
    days, rate = (1, 3, 20)[seed % 3], np.exp(rng.normal(2, 0.7))
    one, two = rng.uniform(0.1, 0.7, 2)
    shares = np.array([one * two, one * (1 - two), (1 - one) * two])
    y = rng.poisson(days * rate * shares)
    data = {"y": y, "days": float(days), "guess": 2.0}
    box = {"keen": (np.full(2, -8.5), np.full(2, 8.5)), "log_animals": (-7.0, 13.0)}
    return latticed(_two_watchers, box, data, 91)


def _farms(theta, data):
    mu, tau = theta["mu"], jnp.exp(theta["log_tau"])
    linear = mu + tau * theta["farm"]
    none = -jnp.exp(linear) * data["size"]
    rows = data["y"] * jnp.log(-jnp.expm1(none)) + (data["n"] - data["y"]) * none
    prior = -0.5 * jnp.sum(theta["farm"] ** 2)
    return jnp.sum(rows) + prior + around(theta, mu=(-1, 1.5), log_tau=(-0.5, 0.7))


def farms(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Pools of samples of farms that differ: a pool is ill where any of it is."""
    count = (4, 10, 30)[seed % 3]
    n, size = rng.integers(2, 8, count), rng.uniform(1, 4, count)
    linear = rng.normal(-1, 0.5) + rng.uniform(0.2, 1) * rng.normal(size=count)
    y = rng.binomial(n, -np.expm1(-np.exp(linear) * size))
    data = {"y": y, "n": n, "size": size}

    def odds(eta, size):
        rate = np.exp(np.minimum(eta, 300.0)) * size
        return rate, rate / np.expm1(np.clip(rate, 1e-300, 600.0))

    def height(eta):
        rate = np.exp(np.minimum(eta, 300.0)) * size[:, None]
        ill = np.log(-np.expm1(-np.maximum(rate, 1e-300)))
        return y[:, None] * ill - (n - y)[:, None] * rate

    def slope(eta):
        rate, part = odds(eta, size)
        return y * part - (n - y) * rate

    def bend(eta):
        rate, part = odds(eta, size)
        return y * part * (1 - rate - part) - (n - y) * rate

    def conditional(u):
        mu, tau = u[:, :1] + np.zeros(count), np.exp(u[:, 1:]) + np.zeros(count)
        reach = 45 + 0 * tau
        total, mean, variance = one_each(mu, tau, reach, slope, bend, height, True)
        top = total.sum(axis=1) - 0.5 * ((u[:, 0] + 1) / 1.5) ** 2
        top -= 0.5 * ((u[:, 1] + 0.5) / 0.7) ** 2
        return top, (mean - mu) / tau, variance / tau**2

    outer = {"mu": (-9.0, 7.0), "log_tau": (-5.5, 3.5)}
    return nested(_farms, outer, {"farm": (count,)}, data, conditional, 31)


def _two_clones(theta, data):
    share = theta["share"]
    a, b = share
    low, high = data["y"], data["n"] - data["y"]
    one = low * jnp.log(a / 2) + high * jnp.log1p(-a / 2)
    two = low * jnp.log(b / 2) + high * jnp.log1p(-b / 2)
    return jnp.sum(jnp.logaddexp(one, two))


def two_clones(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Mutations of a tumour with two kinds of cells whose shares may be exchanged."""
    count = (4, 12, 40)[seed % 3]
    share = np.array([rng.uniform(0.1, 0.4), rng.uniform(0.5, 0.9)])
    n = rng.integers(10, 40, count)
    y = rng.binomial(n, share[rng.integers(0, 2, count)] / 2)
    space = UnconstrainedSpace({"share": interval(0.0, 1.0)})
    corners = np.full(2, 1e-6), np.full(2, 1 - 1e-6)
    return latticed(_two_clones, {"share": corners}, {"y": y, "n": n}, 601, space)
