"""Mode and covariance of hundreds and thousands of parameters, and guides for them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.objectives import NoBlocks
from softcvi.starts import Explore, Moments, suggest
from softcvi.starts._laplace import _separate

KEY = jax.random.key(0)


def check_normal(log_prob, mean, covariance):
    target = softcvi.DensityTarget(log_prob, jnp.zeros(mean.size))
    report = Explore().find(KEY, target)
    mode, sd = report.modes[0], np.sqrt(np.diagonal(covariance))
    assert len(report.modes) == 1
    # A normal is known exactly, up to the rounding of data to single precision.
    np.testing.assert_allclose((mode.mean - mean) / sd, 0.0, atol=1e-2)
    np.testing.assert_allclose(mode.deviations / sd, 1.0, rtol=1e-2)
    assert mode.khat is None
    return report


@pytest.mark.parametrize("size", [150, pytest.param(1000, marks=pytest.mark.slow)])
def test_normals_with_a_large_condition_number(size):
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(size, size)))[0]
    values = np.geomspace(1.0, 1e3, size)
    precision, mean = (rotation * values) @ rotation.T, 3 * rng.normal(size=size)
    report = check_normal(
        lambda x: -0.5 * (x - mean) @ precision @ (x - mean),
        mean,
        (rotation / values) @ rotation.T,
    )
    [choice] = suggest(KEY, report)
    assert not isinstance(choice.objective.blocks, NoBlocks)
    draws = choice.guide.sample(KEY)
    assert draws.shape == (size,)


@pytest.mark.slow
def test_a_random_walk_of_500_steps():
    rng = np.random.default_rng(1)
    y = 0.1 * np.cumsum(rng.normal(size=500)) + 0.5 * rng.normal(size=500)
    difference = np.eye(500) - np.eye(500, k=-1)
    covariance = np.linalg.inv(difference.T @ difference / 0.01 + np.eye(500) / 0.25)

    def log_prob(x):
        walk = x[0] ** 2 + jnp.sum(jnp.diff(x) ** 2)
        return -0.5 * walk / 0.01 - 0.5 * jnp.sum((y - x) ** 2) / 0.25

    check_normal(log_prob, covariance @ (y / 0.25), covariance)


def test_two_modes_of_many_parameters_are_told_apart():
    """Starts lead to either; the weights are those of their Laplace evidence."""
    centres = np.stack([np.full(120, -3.0), np.full(120, 3.0)])

    def log_prob(x):
        parts = -0.5 * jnp.sum((x - centres) ** 2, axis=-1)
        return jax.nn.logsumexp(parts + jnp.log(np.array([0.3, 0.7])))

    report = Explore().find(KEY, softcvi.DensityTarget(log_prob, jnp.zeros(120)))
    assert len(report.modes) == 2
    guide = suggest(KEY, report)[0].guide
    np.testing.assert_allclose(guide.weights, [0.7, 0.3], atol=0.01)


def test_few_steps_are_enough_where_the_start_fits_already():
    """A normal is known before the first step, and training it costs the most."""
    sd = np.geomspace(0.1, 10.0, 120)
    target = softcvi.DensityTarget(
        lambda x: -0.5 * jnp.sum(((x - 1.0) / sd) ** 2), jnp.zeros(120)
    )
    result = softcvi.fit(KEY, target, progress=False)
    assert result.verdict.trusted
    assert result.steps < 10_000
    assert "100% of the draws" in result.choices["steps"]


def test_a_gaussian_process_with_counts_gets_its_best_normal():
    """Each parameter has a term of its own: the diagonal of the precision is mended."""
    rng = np.random.default_rng(0)
    size = 110
    place = np.arange(size)
    covariance = np.exp(-np.abs(place[:, None] - place) / 5.0) + 1e-3 * np.eye(size)
    precision = np.linalg.inv(covariance)
    field = np.linalg.cholesky(covariance) @ rng.normal(size=size)
    counts = rng.poisson(np.exp(field - 0.5))

    def log_prob(x):
        seen = jnp.sum(counts * (x - 0.5) - jnp.exp(x - 0.5))
        return seen - 0.5 * x @ precision @ x

    target = softcvi.DensityTarget(log_prob, jnp.zeros(size))
    [mode] = Explore().find(KEY, target).modes
    # The best normal solves: precision + diag(E exp(x - 0.5)), and a mean gradient of
    # zero, with expectations under itself.
    mean, variance = np.zeros(size), np.zeros(size)
    for _ in range(200):
        rate = np.exp(mean - 0.5 + variance / 2)
        inverse = np.linalg.inv(precision + np.diag(rate))
        mean = mean + 0.5 * inverse @ (counts - rate - precision @ mean)
        variance = 0.5 * variance + 0.5 * np.diag(inverse)
    sd = np.sqrt(variance)
    np.testing.assert_allclose((mode.mean - mean) / sd, 0.0, atol=0.1)
    np.testing.assert_allclose(mode.deviations / sd, 1.0, rtol=0.03)


def test_too_many_parameters_for_a_matrix():
    size = 5000
    sd = np.geomspace(0.1, 10.0, size)
    target = softcvi.DensityTarget(
        lambda x: -0.5 * jnp.sum(((x - 1.0) / sd) ** 2), jnp.zeros(size)
    )
    report = Explore().find(KEY, target)
    mode = report.modes[0]
    assert mode.covariance is None
    np.testing.assert_allclose((mode.mean - 1.0) / sd, 0.0, atol=0.3)
    np.testing.assert_allclose(mode.deviations / sd, 1.0, rtol=0.1)
    choice = suggest(KEY, report)[0]
    assert choice.guide.sample(KEY).shape == (size,)
    assert isinstance(choice.objective, softcvi.ELBO)
    assert "the ELBO" in choice.description


@pytest.mark.slow
def test_forty_normals_of_fifty_parameters():
    """Their number, and no pairwise work, sets the time: some 15 s of one core."""
    centres = np.random.default_rng(5).uniform(-40, 40, size=(40, 50))

    def log_prob(x):
        return jax.nn.logsumexp(-0.5 * jnp.sum((x - centres) ** 2, axis=-1))

    report = Explore().find(KEY, softcvi.DensityTarget(log_prob, jnp.zeros(50)))
    means = np.stack([mode.mean for mode in report.modes])
    gaps = np.linalg.norm(centres[:, None] - means, axis=-1)
    assert len(means) == 40
    # Within a tenth of a standard deviation for each parameter.
    assert np.all(np.min(gaps, axis=1) < 0.1 * np.sqrt(50))


@pytest.mark.parametrize(
    ("reached", "is_top", "counts"),
    [(9.0, True, [1, 1]), (9.0, False, [1]), (0.1, True, [2])],
    ids=["another top", "cut short", "led to the first"],
)
def test_only_tops_are_modes(reached, is_top, counts):
    def log_density(x):
        return np.logaddexp(-0.5 * x[:, 0] ** 2, -5.0 - 0.5 * (x[:, 0] - 9.0) ** 2)

    first = Moments(np.zeros(1), np.eye(1))
    there = Moments(np.array([reached]), np.eye(1))
    ends = np.array([[0.0], [8.0]])
    modes, found = _separate(ends, first, log_density, lambda x: (there, is_top))
    assert found == counts
    assert len(modes) == len(counts)
