"""Paths that take few evaluations, for densities of which each is expensive."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.adapters.stan import AbstractProgram, StanTarget
from softcvi.starts import Explore
from softcvi.starts._climb import Budget, climb
from softcvi.starts._double import as_density

KEY = jax.random.key(0)
_SIZE = 12
# Share of effective draws of a mode. With the few draws that an expensive density is
# allowed it is .38 to .76 (six keys), and changes with the rounding of the machine.
_USABLE = 0.2


class _Poisson(AbstractProgram):
    """Counts with a log-linear mean, in units far apart; no density beyond a border."""

    size = _SIZE
    names = (tuple(f"x.{i + 1}" for i in range(_SIZE)), (), ())

    def __init__(self, operations: int):
        rng = np.random.default_rng(0)
        self.units = 10.0 ** rng.uniform(-1, 1, _SIZE)
        self.design = rng.normal(size=(200, _SIZE)) / self.units
        self.truth = 0.3 * rng.normal(size=_SIZE) * self.units
        self.counts = rng.poisson(np.exp(self.design @ self.truth))
        self.operations = operations
        self.num_values = self.num_gradients = 0

    def log_density(self, rows):
        self.num_values += len(rows)
        return self._both(rows)[0]

    def log_density_and_gradient(self, rows):
        self.num_gradients += len(rows)
        return self._both(rows)

    def _both(self, rows):
        rows = np.where(np.isfinite(rows), rows, 1e300)
        with np.errstate(over="ignore", invalid="ignore"):
            rate, from_prior = rows @ self.design.T, rows / (3 * self.units) ** 2
            mean = np.exp(rate)
            values = np.sum(self.counts * rate - mean, axis=1)
            values -= 0.5 * np.sum(rows * from_prior, axis=1)
            gradients = (self.counts - mean) @ self.design - from_prior
        is_outside = (rows[:, 0] > 20 * self.units[0]) | ~np.isfinite(values)
        values[is_outside], gradients[is_outside] = -np.inf, 0.0
        return values, gradients

    def constrain(self, rows, seeds):
        return rows

    def unconstrain(self, parameters):
        return parameters

    @property
    def spent(self) -> int:
        return self.num_values + 3 * self.num_gradients


def _expensive(operations=3_000_000):
    program = _Poisson(operations)
    return program, StanTarget(program)


def test_paths_are_frugal_where_a_density_is_expensive():
    budgets = [
        Budget.of_density(as_density(_expensive(operations)[1]))
        for operations in (2_000, 100_000, 3_000_000)
    ]
    assert [budget.every is None for budget in budgets] == [True, True, False]
    assert budgets[2].batch < budgets[0].batch == budgets[1].batch


def test_a_look_at_an_expensive_density_takes_few_evaluations():
    """Newton paths took 71,000."""
    program, target = _expensive()
    mode = Explore().glimpse(KEY, target).modes[0]
    np.testing.assert_array_less(np.abs(mode.mean - program.truth), 5 * mode.deviations)
    assert mode.ess_share > _USABLE
    assert program.spent < 20_000


def test_a_whole_search_finds_an_expensive_posterior():
    program, target = _expensive()
    mode = Explore().find(KEY, target).modes[0]
    assert mode.ess_share > _USABLE
    assert program.spent < 60_000


@pytest.mark.parametrize("every", [2, 8])
def test_frugal_paths_end_where_newton_paths_do(every):
    """Not where the density is zero, though it is near."""
    scale = jnp.logspace(-2, 2, 8)

    def log_prob(x):
        z = x / scale - 1.0
        inside = -0.5 * jnp.sum(z**2) - 0.01 * jnp.sum((z[1:] - z[:-1]) ** 4)
        return jnp.where(x[0] < 0.08, inside, -jnp.inf)

    density = as_density(softcvi.DensityTarget(log_prob, jnp.zeros(8)))
    starts = np.random.default_rng(0).normal(size=(4, 8))
    starts[:, 0] = 0.01 * np.arange(4)
    with density.context():
        newton, _ = climb(density, starts)
        frugal, flat = climb(density, starts, every=every)
    assert not len(flat)
    heights = [float(log_prob(jnp.asarray(mean))) for mean in frugal.means]
    assert np.all(np.isfinite(heights))
    one, other = np.argmax(frugal.elbos), np.argmax(newton.elbos)
    width = np.sqrt(np.diagonal(newton.covariances[other]))
    apart = (frugal.means[one] - newton.means[other]) / width
    np.testing.assert_allclose(apart, 0.0, atol=0.3)
    found = np.sqrt(np.diagonal(frugal.covariances[one])) / width
    np.testing.assert_allclose(found, 1.0, atol=0.3)
