"""Draws of the posterior stay when parameters are drawn anew; those of others move."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

import softcvi
from softcvi.diagnostics import judge
from softcvi.diagnostics._redraw import num_redrawn, redraw
from softcvi.targets._rounding import are_errors

NUMBER = 2000
COVARIANCE = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 100.0]])
# The second parameter is known by its prior only where the first one is above this.
BREAK, NARROW, WIDE = 0.95, 0.05, 1.0


def rng(seed=0):
    return np.random.default_rng(seed)


def beside(density):
    limits = {"eps": 2.0**-52, "nats": 0.5, "rounds": 1}
    return functools.partial(are_errors, rng(), density, **limits)


def normal(x):
    return -0.5 * np.sum(x * np.linalg.solve(COVARIANCE, x.T).T, axis=1)


def funnel(x):
    return -0.5 * (x[:, 0] ** 2 + x[:, 1] ** 2 * np.exp(-2 * x[:, 0])) - x[:, 0]


def heavy(x):
    return np.sum(scipy.stats.t.logpdf(x, 3.0), axis=1)


def box(x):
    return np.where(np.all((x > 0) & (x < 1), axis=1), 0.0, -np.inf)


def wide_behind_a_break(x):
    is_inside = (x[:, 0] > 0) & (x[:, 0] < 1)
    width = np.where(x[:, 0] > BREAK, WIDE, NARROW)
    return np.where(is_inside, scipy.stats.norm.logpdf(x[:, 1], 0, width), -np.inf)


def draws_behind_a_break(first):
    width = np.where(first > BREAK, WIDE, NARROW)
    return np.column_stack([first, width * rng(2).normal(size=len(first))])


def draws_of(name):
    normals = rng(1).normal(size=(8000, 2))
    return {
        "normal": rng(1).multivariate_normal(np.zeros(3), COVARIANCE, 8000),
        "funnel": np.column_stack(
            [normals[:, 0], np.exp(normals[:, 0]) * normals[:, 1]]
        ),
        "heavy": rng(1).standard_t(3.0, (8000, 2)),
        "box": rng(1).uniform(size=(8000, 2)),
        "break": draws_behind_a_break(rng(1).uniform(size=8000)),
    }[name]


@pytest.mark.parametrize(
    ("name", "density"),
    [
        ("normal", normal),
        ("funnel", funnel),
        ("heavy", heavy),
        ("box", box),
        ("break", wide_behind_a_break),
    ],
)
def test_draws_of_the_posterior_stay(name, density):
    check = redraw(rng(), density, draws_of(name), None, NUMBER, beside(density))
    # Two standard errors are taken off; several parameters are looked at.
    assert check.shift < 0.05
    assert abs(np.log(check.spread)) < 0.1


def test_a_part_that_no_draw_is_in_is_entered_where_two_parameters_change_together():
    missed = draws_behind_a_break(rng(1).uniform(0, BREAK, 8000))
    check = redraw(
        rng(), wide_behind_a_break, missed, None, NUMBER, beside(wide_behind_a_break)
    )
    assert check.spread < 0.5
    assert not judge(softcvi.diagnostics.Evidence(redrawn=check)).trusted


def test_weights_correct_the_draws_before_they_are_compared():
    draws = rng(1).normal(0.0, 2.0, (20_000, 2))

    def density(x):
        return -0.5 * np.sum(x**2, axis=1)

    log_weights = density(draws) + 0.5 * np.sum((draws / 2) ** 2, axis=1)
    check = redraw(rng(), density, draws, np.exp(log_weights), NUMBER, beside(density))
    assert check.spread == pytest.approx(1.0, abs=0.05)
    assert redraw(rng(), density, draws, None, NUMBER, beside(density)).spread > 1.5


def negative_binomial(x):
    """Of counts with a mean of 4, by the logarithm of their size; errors from 30 on."""
    size, counts = np.exp(x), np.repeat([0, 1, 2, 4, 5, 8], 10)
    terms = scipy.special.gammaln(counts + size) - scipy.special.gammaln(size)
    terms += size * np.log(size / (4 + size)) + counts * np.log(4 / (4 + size))
    return np.sum(terms, axis=1) - 0.5 * ((x[:, 0] - 1) / 2) ** 2


def test_rounding_errors_far_out_are_no_mass():
    grid = np.linspace(-3.0, 12.0, 3001)[:, None]
    mass = np.exp(negative_binomial(grid) - np.max(negative_binomial(grid)))
    draws = rng(1).choice(grid, 8000, p=mass / np.sum(mass))
    assert np.max(negative_binomial(np.linspace(30, 45, 999)[:, None])) > 1000
    check = redraw(
        rng(), negative_binomial, draws, None, NUMBER, beside(negative_binomial)
    )
    assert check.shift < 0.05
    assert abs(np.log(check.spread)) < 0.1


def test_nothing_is_said_where_evaluations_are_few_or_draws_have_no_density():
    assert num_redrawn(3, 1000) == 0
    assert num_redrawn(3, 10**9) == 4000
    nowhere = np.full((8000, 2), 2.0)
    assert redraw(rng(), box, nowhere, None, NUMBER, beside(box)) is None


def test_a_trusted_fit_has_been_drawn_anew():
    target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
    result = softcvi.fit(jax.random.key(0), target, steps=100, progress=False)
    assert result.verdict.trusted
    assert result.evidence.redrawn.shift < 0.05
    assert abs(np.log(result.evidence.redrawn.spread)) < 0.1
