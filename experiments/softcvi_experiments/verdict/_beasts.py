"""Animals and plants: how many, how they live, and where, by counts in the field."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from scipy import special

from softcvi_experiments.verdict._coordinates import normal, turned
from softcvi_experiments.verdict._lattice import latticed, nested
from softcvi_experiments.verdict._posterior import RandomPosterior
from softcvi_experiments.verdict._priors import around
from softcvi_experiments.verdict._weighed import weighed


def _misfit(data, mean):
    return -0.5 * jnp.sum(((data["y"] - mean) / data["sd"]) ** 2)


def _poisson(y, log_mean):
    return jnp.sum(y * log_mean - jnp.exp(log_mean))


def _swings(logs, steps, width):
    """Log numbers of hares and lynxes by Heun's rule (Lotka and Volterra)."""
    birth, death = jnp.exp(logs[0]), jnp.exp(logs[1])

    def slope(x):
        hares, lynxes = jnp.exp(x[0]), jnp.exp(x[1])
        return jnp.stack([birth * (1 - lynxes), death * (hares - 1)])

    def step(x, _):
        one = slope(x)
        x = x + width / 2 * (one + slope(x + width * one))
        return x, x

    begin = jnp.stack([0.6 + 0 * birth, -0.4 + 0 * death])
    return jax.lax.scan(step, begin, None, length=steps)[1]


def _hares(theta, data):
    # As many steps as the table of what was seen has rows.
    logs = theta["log_birth"], theta["log_death"]
    x = _swings(logs, len(data["y"]), data["width"])
    rest = data["seen"] * (data["y"] - x) / data["sd"]
    prior = around(theta, log_birth=(0, 0.5), log_death=(0, 0.5))
    return -0.5 * jnp.sum(rest**2) + prior


def hares(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Hares and lynxes, counted now and then: several periods fit (an ODE)."""
    count, width, steps = (3, 5, 10)[seed % 3], 0.15, 100
    sd = rng.uniform(0.15, 0.4)
    swings = np.asarray(_swings(rng.normal(0, 0.3, 2), steps, width), np.float64)
    # What single precision may leave differently is cut off.
    x = np.round(swings, 2)
    seen = np.zeros((steps, 2))
    seen[rng.choice(steps, count, replace=False)] = 1
    y = seen * (x + sd * rng.normal(size=x.shape))
    data = {"y": y, "seen": seen, "sd": sd, "width": width}
    box = {"log_birth": (-3.4, 3.0), "log_death": (-3.4, 3.0)}
    return latticed(_hares, box, data, 301)


def _allee(theta, data):
    low = jax.nn.sigmoid(theta["low"])
    rate = jnp.exp(theta["log_rate"])

    def step(x, _):
        n = jnp.exp(x)
        x = x + data["width"] * rate * (1 - n) * (n - low)
        return x, x

    begin = jnp.log(data["begin"]) + 0 * rate
    x = jax.lax.scan(step, begin, None, length=60)[1]
    prior = around(theta, low=(-1, 1), log_rate=(0, 0.7))
    return _misfit(data, x[data["at"].astype(int)]) + prior


def allee(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A herd that dies out below some number and grows above it (Allee)."""
    count, sd, width = (2, 5, 15)[seed % 3], rng.uniform(0.1, 0.3), 0.1
    low, rate = special.expit(rng.normal(-1, 0.5)), np.exp(rng.normal(0, 0.3))
    begin = low * np.exp(rng.choice([-1, 1]) * rng.uniform(0.05, 0.3))
    x, path = np.log(begin), []
    for _ in range(60):
        x = x + width * rate * (1 - np.exp(x)) * (np.exp(x) - low)
        path.append(x)
    at = np.sort(rng.choice(60, count, replace=False))
    y = np.array(path)[at] + sd * rng.normal(size=count)
    data = {"y": y, "sd": sd, "at": at, "begin": begin, "width": width}
    box = {"low": (-7.7, 5.7), "log_rate": (-4.7, 3.0)}
    return latticed(_allee, box, data, 501)


def _butterflies(theta, data):
    log_mean = data["days"] @ theta["beta"]
    return _poisson(data["y"], log_mean) - 0.5 * jnp.sum(
        (theta["beta"] / data["wide"]) ** 2
    )


def butterflies(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Counts along a season, as a parabola in the day of the year."""
    count = (5, 10, 30)[seed % 3]
    day = np.sort(rng.choice(np.arange(120.0, 240.0), count, replace=False))
    middle, width = rng.uniform(160, 200), rng.uniform(12, 25)
    log_mean = rng.uniform(1, 3) - 0.5 * ((day - middle) / width) ** 2
    y = rng.poisson(np.exp(log_mean))
    days = np.stack([np.ones(count), day, day**2], axis=1)
    wide = np.array([300.0, 5.0, 0.03])
    far, scale = 180.0, 20.0

    def sites_of(u):
        a, b, c = u[:, 0], u[:, 1] / scale, u[:, 2] / scale**2
        return np.stack([a - b * far + c * far**2, b - 2 * c * far, c], axis=1)

    box = np.array([-20.0, -20.0, -14.0]), np.array([12.0, 20.0, 6.0])
    data = {"days": days, "y": y, "wide": wide}
    return turned(_butterflies, {"beta": (3,)}, data, box, sites_of, 121)


def _ages(theta, data):
    young, old = jax.nn.sigmoid(theta["young"]), jax.nn.sigmoid(theta["old"])

    def year(n, _):
        n = jnp.stack([jnp.exp(theta["log_young"]) * n[1], young * n[0] + old * n[1]])
        return n, n

    n = jax.lax.scan(year, data["begin"], None, length=len(data["y"]))[1]
    prior = around(theta, log_young=(0, 0.7), young=(-1, 1), old=(1, 1))
    return _poisson(data["y"], jnp.log(data["share"] * n)) + prior


def stages_of_life(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Young and old birds of some years: how many young, and which of them live."""
    years, share = (2, 5, 12)[seed % 3], rng.uniform(0.1, 0.5)
    n = begin = np.array([rng.uniform(10, 60), rng.uniform(10, 60)])
    births, young, old = np.exp(rng.normal(0, 0.3)), rng.uniform(0.1, 0.5), 0.7
    y = []
    for _ in range(years):
        n = np.array([births * n[1], young * n[0] + old * n[1]])
        y.append(rng.poisson(share * n))
    data = {"y": np.array(y), "begin": begin, "share": share}
    box = {"log_young": (-4.7, 4.7), "young": (-7.7, 5.7), "old": (-5.7, 7.7)}
    return latticed(_ages, box, data, 81)


def _unseen_species(theta, data):
    size, mean = jnp.exp(theta["log_size"]), jnp.exp(theta["log_mean"])
    k = data["k"]
    share = gammaln(k + size) - gammaln(size) - gammaln(k + 1)
    share += size * (theta["log_size"] - jnp.log(size + mean))
    share += k * (theta["log_mean"] - jnp.log(size + mean))
    prior = around(theta, log_all=(5, 1.5), log_size=(-0.5, 1), log_mean=(0, 1))
    return _poisson(data["y"], theta["log_all"] + share) + prior


def unseen_species(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Species by how often they were caught, and those that never were (Fisher)."""
    species, most = ((30, 5), (100, 10), (600, 25))[seed % 3]
    rate = rng.gamma(rng.uniform(0.3, 1.2), size=species) * rng.uniform(0.5, 2)
    counts = rng.poisson(rate)
    k = np.arange(1.0, most + 1)
    y = np.array([np.sum(counts == times) for times in k])
    box = {"log_all": (-2.0, 14.0), "log_size": (-7.2, 6.2), "log_mean": (-6.7, 6.7)}
    return latticed(_unseen_species, box, {"k": k, "y": y}, 101)


def _three_lists(theta, data):
    log_mean = theta["log_unseen"] + data["main"] @ theta["list"]
    log_mean += data["pairs"] @ theta["link"]
    prior = around(theta, log_unseen=(4, 2), list=(-1, 1.5), link=(0, 0.7))
    return _poisson(data["y"], log_mean) + prior


def three_lists(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Addicts by three lists that are not independent: those on none of them."""
    links, people = ((0, 60), (1, 200), (3, 800))[seed % 3]
    main = np.array(list(np.ndindex(2, 2, 2)), float)[1:]
    pairs = np.stack([main[:, 0] * main[:, 1], main[:, 0] * main[:, 2]], axis=1)
    pairs = np.column_stack([pairs, main[:, 1] * main[:, 2]])[:, : max(links, 1)]
    chance = special.expit(rng.normal(-0.8, 0.6, 3))
    odds = np.prod(np.where(main > 0, chance, 1 - chance), axis=1)
    y = rng.poisson(people * odds * np.exp(pairs @ rng.normal(0, 0.4, pairs.shape[1])))
    data = {"main": main, "pairs": pairs, "y": y}
    shapes = {"log_unseen": (), "list": (3,), "link": (pairs.shape[1],)}
    middle = {"log_unseen": 3.5, "list": -0.5}
    return weighed(rng, _three_lists, shapes, data, {}, middle)


def _marked_and_seen(theta, data):
    alive, seen = jax.nn.sigmoid(theta["alive"]), jax.nn.sigmoid(theta["seen"])
    years, fit = alive.size, 0.0
    for first in range(years):
        missed, never = 1.0, 1.0
        for later in range(first, years):
            missed = missed * alive[later]
            chance = missed * seen[later]
            fit += data["again"][first, later] * jnp.log(chance)
            never, missed = never - chance, missed * (1 - seen[later])
        fit += data["never"][first] * jnp.log(never)
    return fit + around(theta, alive=(0.5, 1.2), seen=(0, 1.2))


def marked_and_seen(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Ringed birds seen in later years: of the last, only a product is known."""
    years, each_year = ((2, 12), (3, 30), (5, 80))[seed % 3]
    alive, seen = rng.uniform(0.4, 0.9, years), rng.uniform(0.2, 0.8, years)
    again, never = np.zeros((years, years)), np.zeros(years)
    for first in range(years):
        left = each_year
        for later in range(first, years):
            left = rng.binomial(left, alive[later])
            found = rng.binomial(left, seen[later])
            again[first, later] = found
            left -= found
        never[first] = each_year - again[first].sum()
    data = {"again": again, "never": never}
    shapes = {"alive": (years,), "seen": (years,)}
    return weighed(rng, _marked_and_seen, shapes, data, {})


def _homes(theta, data):
    gap = theta["home"][:, None, :] - data["trap"]
    far = jnp.sum(gap**2, axis=2) * jnp.exp(-2 * theta["log_reach"]) / 2
    log_mean = theta["log_rate"] - far + jnp.log(data["nights"])
    prior = around(theta, log_reach=(0, 0.5), log_rate=(-1, 1), home=(0, 2))
    return _poisson(data["y"], log_mean) + prior


def homes(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Where animals live that went into traps along a road: on either side of it."""
    animals, nights = (1, 3, 7)[seed % 3], rng.uniform(3, 12)
    trap = np.stack([np.linspace(-3, 3, 6), np.zeros(6)], axis=1)
    home = rng.normal(0, [1.5, 1.2], (animals, 2))
    far = np.sum((home[:, None] - trap) ** 2, axis=2)
    y = rng.poisson(nights * 0.8 * np.exp(-far / 2))
    # Both sides of the road are alike, so that one of them is enough.
    x, side = np.linspace(-9, 9, 91), np.linspace(0.1, 8.9, 45)
    along = (x[:, None] - trap[:, 0]) ** 2

    def conditional(u):
        narrow = np.exp(-2 * u[:, 0]) / 2
        level = nights * np.exp(u[:, 1])
        # Sums over traps are of a product: one part along the road, one across it.
        whole = np.exp(-narrow[:, None, None] * along)
        total = y.sum(axis=1)
        reach = narrow[:, None, None] * (along @ y.T).T
        across = narrow[:, None] * side**2
        expected = level[:, None] * whole.sum(axis=2)
        rows = -expected[:, :, None] * np.exp(-across)[:, None, :]
        heights, means, variances = np.zeros(len(u)), [], []
        for i in range(animals):
            plane = rows - reach[:, i, :, None] - total[i] * across[:, None, :]
            plane = plane - (x[:, None] ** 2 + side**2) / 8
            top = plane.max(axis=(1, 2))
            weights = np.exp(plane - top[:, None, None])
            mass = weights.sum(axis=(1, 2))
            heights += top + np.log(mass) + total[i] * np.log(level)
            one, two = (weights.sum(axis=k) / mass[:, None] for k in (2, 1))
            mean = one @ x
            means += [mean, 0 * mean]
            variances += [one @ x**2 - mean**2, two @ side**2]
        heights += normal(u, [0, -1], [0.5, 1])
        return heights, np.stack(means, 1), np.stack(variances, 1)

    outer = {"log_reach": (-3.3, 3.3), "log_rate": (-7.0, 5.0)}
    data = {"trap": trap, "y": y, "nights": nights}
    return nested(_homes, outer, {"home": (animals, 2)}, data, conditional, 21)


def _fished_down(theta, data):
    most, rate = jnp.exp(theta["log_most"]), jnp.exp(theta["log_rate"])

    def year(stock, caught):
        stock = stock + rate * stock * (1 - stock / most) - caught
        # A stock that would be negative is all but gone.
        stock = jnp.maximum(stock, 0.01 * most)
        return stock, stock

    stock = jax.lax.scan(year, most, data["caught"])[1]
    prior = around(theta, log_rate=(-1, 0.7), log_most=(data["guess"], 1))
    mean = theta["log_net"] + jnp.log(stock)
    return _misfit(data, mean) + prior + around(theta, log_net=(data["net"], 2))


def fished_down(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A stock by catches for the same effort: large and slow, or small and quick."""
    years, sd = (4, 8, 20)[seed % 3], rng.uniform(0.1, 0.3)
    most, rate, net = np.exp(rng.normal(7, 1)), rng.uniform(0.2, 0.6), rng.normal(-8, 2)
    share = rng.uniform(0.05, 0.25, years)
    stock, path, caught = most, [], share
    for part in share:
        stock = stock + rate * stock * (1 - stock / most) - part * most
        stock = max(stock, 0.01 * most)
        path.append(stock)
    y = net + np.log(path) + sd * rng.normal(size=years)
    caught = share * most
    guess = np.log(most) + rng.normal(0.3, 0.5)

    def conditional(u):
        big, quick = np.exp(u[:, 0]), np.exp(u[:, 1])
        now, logs = big, []
        for part in caught:
            now = np.maximum(now + quick * now * (1 - now / big) - part, 0.01 * big)
            logs.append(np.log(now))
        rest = y - np.stack(logs, axis=1) - net
        precision = years / sd**2 + 1 / 4
        mean = rest.sum(axis=1) / sd**2 / precision
        height = 0.5 * precision * mean**2 - 0.5 * np.sum(rest**2, axis=1) / sd**2
        height += normal(u, [guess, -1], [1, 0.7])
        return height, net + mean[:, None], np.full((len(u), 1), 1 / precision)

    outer = {"log_most": (guess - 6.7, guess + 6.7), "log_rate": (-5.7, 2.0)}
    data = {"y": y, "sd": sd, "caught": caught, "guess": guess, "net": net}
    return nested(_fished_down, outer, {"log_net": ()}, data, conditional, 501)


def _rows_times_columns(theta, data):
    log_mean = theta["row"][:, None] + theta["column"]
    prior = jnp.sum(data["shape"] * theta["row"] - data["per"] * jnp.exp(theta["row"]))
    return _poisson(data["y"], log_mean) + prior + around(theta, column=(0, 2))


def rows_times_columns(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Flowers by places and visitors: products of two numbers, neither known alone."""
    places, visitors = ((3, 1), (10, 2), (30, 3))[seed % 3]
    shape, per = rng.uniform(0.3, 1), rng.uniform(0.02, 0.2)
    row, column = rng.gamma(1.0, 2.0, (places, 1)), np.exp(rng.normal(0, 1, visitors))
    y = rng.poisson(row * column)
    total = y.sum(axis=1) + shape

    def conditional(u):
        rate = per + np.exp(u).sum(axis=1, keepdims=True)
        height = u @ y.sum(axis=0) - total.sum() * np.log(rate[:, 0])
        mean = special.digamma(total) - np.log(rate)
        variance = np.tile(special.polygamma(1, total), (len(u), 1))
        return height + normal(u, 0, 2), mean, variance

    far = np.full(visitors, 14.0)
    outer = {"column": (-far, far)}
    data = {"y": y, "shape": shape, "per": per}
    points = (1001, 301, 121)[seed % 3]
    inner = {"row": (places,)}
    return nested(_rows_times_columns, outer, inner, data, conditional, points)
