"""The battery of every space."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from softcvi import Posterior, guides, load, targets
from softcvi.targets import interval, positive


def unconstrained(dtype):
    space = targets.UnconstrainedSpace({"b": positive(), "c": interval(-1.0, 3.0)})
    cast = lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x  # noqa: E731
    return jax.tree_util.tree_map(cast, space)


def funnel(dtype):
    """Two levels, of which the outer one scales what the inner one scales by."""
    like = {"a": np.zeros(()), "b": np.zeros(2), "c": np.zeros((2, 2))}
    structure = targets.Structure(like)
    space = targets.ModelSpace()
    for i, children in enumerate([(1, 2, 4), (3,)]):
        rng = np.random.default_rng(i)
        shape = (len(children), structure.size - len(children))
        centre, loc_slope, log_scale_slope = (
            jnp.asarray(0.3 * rng.normal(size=size), dtype)
            for size in (structure.size, shape, shape)
        )
        space = targets.FunnelSpace(
            space, structure, children, centre, loc_slope, log_scale_slope
        )
    return space


CASES = {
    targets.FunnelSpace: funnel,
    targets.ModelSpace: lambda dtype: targets.ModelSpace(),
    targets.UnconstrainedSpace: unconstrained,
}


def test_the_battery_knows_every_exported_space(exported):
    # One stands in files for a space that only a model knows: it maps nothing.
    found = exported(targets, targets.AbstractSpace) - {targets.SpaceOfModel}
    assert found == set(CASES)


@eqx.filter_jit
def program(space, batch):
    def one(u):
        x, log_det = space.to_model_and_log_det(u)
        back, inverse_log_det = space.from_model_and_log_det(x)
        flat, unravel = ravel_pytree(u)
        jacobian = jax.jacobian(lambda v: ravel_pytree(space.to_model(unravel(v)))[0])
        exact = jnp.linalg.slogdet(jacobian(flat))[1]
        gradient = jax.grad(lambda v: space.to_model_and_log_det(v)[1])(u)
        return x, back, log_det, inverse_log_det, exact, gradient

    return jax.vmap(one)(batch)


@pytest.mark.parametrize("cls", CASES, ids=lambda cls: cls.__name__)
def test_round_trip_and_log_determinants(cls, dtype):
    space = CASES[cls](dtype)
    like = {"a": (), "b": (2,), "c": (2, 2)}
    rng = np.random.default_rng(0)
    batch = {
        name: 1.5 * rng.normal(size=(5, *shape)).astype(dtype)
        for name, shape in like.items()
    }
    x, back, log_det, inverse_log_det, exact, gradient = program(space, batch)

    rounding = 2e-5 if dtype == jnp.float32 else 1e-12
    for name, value in batch.items():
        assert x[name].shape == value.shape
        assert x[name].dtype == dtype
        np.testing.assert_allclose(back[name], value, atol=rounding)
        assert np.all(np.isfinite(gradient[name]))
    assert log_det.shape == (5,)
    np.testing.assert_allclose(log_det, exact, atol=rounding)
    np.testing.assert_allclose(inverse_log_det, -log_det, atol=rounding)
    if cls is targets.UnconstrainedSpace:
        assert np.min(x["b"]) > 0
        assert -1 < np.min(x["c"]) < np.max(x["c"]) < 3


@pytest.mark.parametrize("cls", CASES, ids=lambda cls: cls.__name__)
def test_every_space_comes_back_from_a_file(cls, tmp_path):
    space = CASES[cls](jnp.float32)
    like = {"a": (), "b": (2,), "c": (2, 2)}
    particle = {name: np.full(s, 0.5, np.float32) for name, s in like.items()}
    Posterior(guides.mean_field(particle), space=space).save(tmp_path / "fit.softcvi")
    again = load(tmp_path / "fit.softcvi").space
    assert type(again) is cls
    found, expected = (s.to_model_and_log_det(particle) for s in (again, space))
    for one, other in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
        np.testing.assert_array_equal(one, other)
