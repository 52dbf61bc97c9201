"""Counts that miss some of what is there: animals, places, cases."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from softcvi_experiments.verdict._lattice import latticed
from softcvi_experiments.verdict._posterior import RandomPosterior

# Animals at a place that the sum goes up to.
_MOST = 120


def _chance(logit, yes, no):
    """Log of a chance to the power of yes and its complement to that of no."""
    return yes * jax.nn.log_sigmoid(logit) + no * jax.nn.log_sigmoid(-logit)


def _recapture(theta, data):
    unseen = jnp.exp(theta["log_unseen"])
    animals = data["caught"] + unseen
    ways = gammaln(animals + 1) - gammaln(unseen + 1)
    tries = data["occasions"] * animals
    fit = ways + _chance(theta["logit"], data["total"], tries - data["total"])
    prior = ((theta["log_unseen"] - data["guess"]) / 1.5) ** 2
    return fit - 0.5 * prior - 0.5 * ((theta["logit"] + 1) / 1.5) ** 2


def recapture(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """How many animals were never caught, and the chance to catch one."""
    animals, occasions = int(10 ** rng.uniform(1.3, 3)), rng.integers(2, 5)
    history = rng.uniform(size=(animals, occasions)) < rng.uniform(0.08, 0.35)
    caught = max(int(history.any(axis=1).sum()), 2)
    data = {
        "caught": caught,
        "total": max(int(history.sum()), caught),
        "occasions": occasions,
        "guess": np.log(caught) + rng.normal(),
    }
    middle = data["guess"]
    box = {"log_unseen": (middle - 11, middle + 11), "logit": (-14.0, 10.0)}
    return latticed(_recapture, box, data, 301)


def _occupancy(theta, data):
    there = theta["level"] + theta["effect"] * data["x"]
    visits = _chance(theta["seen"], data["y"], data["visits"] - data["y"])
    # A place without sightings is empty, or its animals were missed.
    missed = jnp.where(data["y"] > 0, -jnp.inf, jax.nn.log_sigmoid(-there))
    rows = jnp.logaddexp(jax.nn.log_sigmoid(there) + visits, missed)
    prior = theta["level"] ** 2 + theta["effect"] ** 2 + theta["seen"] ** 2
    return jnp.sum(rows) - 0.5 * prior / 4


def occupancy(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Where a rare species lives, seen at few of its places."""
    x, visits = rng.normal(size=25), int(rng.integers(2, 4))
    there = rng.logistic(size=25) < rng.normal(0, 0.7) + rng.normal() * x
    y = there * rng.binomial(visits, rng.uniform(0.15, 0.6), 25)
    y[0] = max(y[0], 1)
    corners = (-13.0, 13.0)
    box = {"level": corners, "effect": corners, "seen": corners}
    return latticed(_occupancy, box, {"x": x, "y": y, "visits": visits}, 91)


def _abundance(theta, data):
    rate = jnp.exp(theta["log_rate"])
    there = jnp.arange(_MOST, dtype=rate.dtype)
    prior = there * theta["log_rate"] - rate - gammaln(there + 1)
    missed = there - data["y"][:, :, None]
    inside = missed >= 0
    missed = jnp.where(inside, missed, 0.0)
    ways = gammaln(there + 1) - gammaln(missed + 1)
    some = ways + _chance(theta["logit"], data["y"][:, :, None], missed)
    visits = jnp.sum(jnp.where(inside, some, -jnp.inf), axis=1)
    rows = jax.nn.logsumexp(prior + visits, axis=1)
    hyper = ((theta["log_rate"] - 1) / 1.0) ** 2 + theta["logit"] ** 2
    return jnp.sum(rows) - 0.5 * hyper


def abundance(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Repeated counts at few places: many that hide, or few that do not."""
    there = rng.poisson(rng.uniform(1.5, 6), 8)
    y = rng.binomial(there[:, None], rng.uniform(0.2, 0.7), (8, 3))
    box = {"log_rate": (-4.0, 5.0), "logit": (-8.0, 7.0)}
    return latticed(_abundance, box, {"y": y}, 121)


def _no_gold_standard(theta, data):
    sick = _chance(theta["sick"], data["y"], data["tests"] - data["y"])
    well = _chance(theta["well"], data["y"], data["tests"] - data["y"])
    share = theta["share"]
    rows = jnp.logaddexp(
        jax.nn.log_sigmoid(share) + sick, well + jax.nn.log_sigmoid(-share)
    )
    prior = theta["sick"] ** 2 + theta["well"] ** 2 + theta["share"] ** 2
    return jnp.sum(data["people"] * rows) - 0.5 * prior / 2.25


def no_gold_standard(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Positive tests of people, of whom nobody knows who is sick."""
    tests, count = int(rng.integers(3, 6)), (20, 60)[seed % 2]
    sick = rng.uniform(size=count) < rng.uniform(0.25, 0.75)
    chance = np.where(sick, rng.uniform(0.7, 0.95), rng.uniform(0.05, 0.3))
    found = np.bincount(rng.binomial(tests, chance), minlength=tests + 1)
    data = {"y": np.arange(tests + 1), "people": found, "tests": tests}
    corners = (-10.0, 10.0)
    box = {"sick": corners, "well": corners, "share": corners}
    return latticed(_no_gold_standard, box, data, 121)
