"""Mini-batches whose labels are nearly those of all rows."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from softcvi.targets import ControlVariateTarget, DataTarget, MiniBatchTarget, NpyRows

ROWS = 20_000


def log_prior(b):
    return -0.5 * jnp.sum(b**2)


def log_likelihood(b, rows):
    eta = rows["x"] @ b
    return rows["y"] * eta - jax.nn.softplus(eta)


@pytest.fixture(scope="module")
def problem():
    """A logistic regression, its mode, and draws of its posterior."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 3))
    y = rng.uniform(size=ROWS) < 1 / (1 + np.exp(-x @ np.array([1.0, -0.5, 0.2])))
    mode = np.zeros(3)
    for _ in range(8):
        p = 1 / (1 + np.exp(-x @ mode))
        precision = (x * (p * (1 - p))[:, None]).T @ x + np.eye(3)
        mode = mode + np.linalg.solve(precision, x.T @ (y - p) - mode)
    noise = np.linalg.solve(np.linalg.cholesky(precision).T, rng.normal(size=(3, 8))).T
    data = {"x": x.astype(np.float32), "y": y.astype(np.float32)}
    target = DataTarget(
        log_prior,
        log_likelihood,
        jnp.zeros(3, jnp.float32),
        data=data,
        reference=jnp.asarray(mode, jnp.float32),
    )
    return target, mode, jnp.asarray(mode + noise, jnp.float32)


@eqx.filter_jit
def by_batches(target, points, keys):
    def one(key):
        data = target.draw_data(key)
        return jax.vmap(lambda b: target.log_density(b, data))(points)

    return jax.vmap(one)(keys)


def differences(values):
    return np.asarray(values, np.float64) - np.asarray(values)[..., :1]


def test_labels_of_a_hundredth_of_the_rows_are_those_of_all(problem):
    target, mode, points = problem
    exact = differences(jax.vmap(target.log_density)(points))
    keys = jax.random.split(jax.random.key(0), 40)
    few = ControlVariateTarget(target, mode, ROWS // 100)
    error = differences(by_batches(few, points, keys)) - exact
    assert np.abs(error).max() < 0.05
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = MiniBatchTarget(
            log_prior,
            lambda b, rows: jnp.sum(log_likelihood(b, rows)),
            jnp.zeros(3, jnp.float32),
            data=target.rows.data,
            batch_size=ROWS // 100,
        )
    error = differences(by_batches(plain, points, keys)) - exact
    assert error.std() > 5.0  # what it is for


def test_far_from_the_centre_it_is_right_on_average(problem):
    target, mode, points = problem
    off = mode + 0.3  # tens of standard deviations
    few = ControlVariateTarget(target, off, 500)
    exact = differences(jax.vmap(target.log_density)(points))
    keys = jax.random.split(jax.random.key(1), 400)
    found = differences(by_batches(few, points, keys))
    standard_error = found.std(axis=0) / np.sqrt(len(keys))
    np.testing.assert_array_less(
        np.abs(found.mean(axis=0) - exact), 4 * standard_error + 0.02
    )


def test_without_a_batch_all_rows_are_used(problem):
    target, mode, points = problem
    few = ControlVariateTarget(target, mode, 100)
    assert few.log_density(points[0]) == target.log_density(points[0])


def test_what_cannot_be_drawn_from_is_refused(problem, tmp_path):
    target, mode, _ = problem
    np.save(tmp_path / "x.npy", np.zeros(4))
    streamed = DataTarget(
        log_prior, lambda b, x: x, jnp.zeros(3), data=NpyRows(tmp_path / "x.npy")
    )
    with pytest.raises(TypeError, match="target: must be a DataTarget whose rows"):
        ControlVariateTarget(streamed, mode, 2)
    with pytest.raises(ValueError, match="batch_size: must lie between 1"):
        ControlVariateTarget(target, mode, 0)
