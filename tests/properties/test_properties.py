"""Properties that hold for any numbers and names, with fixed shapes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import softcvi
from softcvi import DensityTarget, guides
from softcvi.fitting import AbstractStoppingRule, Checkpoint, _drive
from softcvi.objectives import contrast

K = 8
# Examples are the same in every run; a program is compiled in the first one.
MANY = settings(max_examples=40, deadline=None, derandomize=True, database=None)
FEW = settings(
    MANY, max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
NUMBERS = arrays(np.float64, K, elements=st.floats(-30, 30))


@jax.jit
def loss_and_gradient(log_p, log_q, log_proposal):
    def loss(log_q):
        return contrast(log_p, log_q, log_proposal)[0]

    with jax.default_matmul_precision("highest"):
        return jax.value_and_grad(loss)(log_q)


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


@given(log_p=NUMBERS, log_q=NUMBERS, constant=st.floats(-1e6, 1e6))
@MANY
def test_a_constant_in_log_p_changes_nothing(log_p, log_q, constant):
    plain = loss_and_gradient(log_p, log_q, log_q)
    moved = loss_and_gradient(log_p + constant, log_q, log_q)
    np.testing.assert_allclose(moved[0], plain[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(moved[1], plain[1], rtol=1e-6, atol=1e-6)


@given(log_p=NUMBERS, log_q=NUMBERS, order=st.permutations(range(K)))
@MANY
def test_the_order_of_particles_changes_nothing(log_p, log_q, order):
    order = np.array(order)
    loss, gradient = loss_and_gradient(log_p, log_q, log_q)
    other, moved = loss_and_gradient(log_p[order], log_q[order], log_q[order])
    np.testing.assert_allclose(other, loss, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moved, np.asarray(gradient)[order], atol=1e-9)


@given(log_p=NUMBERS, bad=st.sampled_from([np.nan, np.inf, -np.inf]))
@MANY
def test_one_bad_density_leaves_loss_and_gradient_finite(log_p, bad):
    log_p[3] = bad
    loss, gradient = loss_and_gradient(log_p, np.zeros(K), np.zeros(K))
    assert np.isfinite(loss)
    assert np.isfinite(gradient).all()


def numbers_of(tree):
    return jax.tree.leaves(eqx.filter(tree, eqx.is_array))


def density(x, constant):
    return constant - 0.5 * jnp.sum((x - 1.0) ** 2)


def normal(constant):
    """Targets that differ in their data share one program."""
    return DensityTarget(density, jnp.zeros(2), observed=jnp.asarray(constant))


# One target and guide, so that programs are compiled once.
with jax.enable_x64(True):
    NORMAL = normal(0.0)
    MEAN_FIELD = guides.mean_field(NORMAL)
STEPS = 60


class Pause(AbstractStoppingRule):
    """Asked after every chunk."""

    step: int = STEPS + 1

    def reason(self, progress):
        return "a pause" if progress.step >= self.step else None


def run(keys, target, guide, **options):
    options = {"steps": STEPS, "start": None, "progress": False, **options}
    return softcvi.fit_many(keys, target, guide, **options)


def same(one, other):
    pairs = zip(*(numbers_of(r.posterior.guide) for r in (one, other)), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)
    np.testing.assert_array_equal(one.history.excess, other.history.excess)


def test_where_a_fit_is_cut_into_chunks_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(_drive, "_CHUNK_SECONDS", 1e9)  # as long as rules allow
    keys = jax.random.split(jax.random.key(0), 2)
    whole = run(keys, NORMAL, MEAN_FIELD)

    @given(lengths=st.lists(st.integers(1, STEPS), min_size=1, max_size=3))
    @settings(FEW, max_examples=5)
    def check(lengths):
        path = tmp_path / "fit.checkpoint"
        path.unlink(missing_ok=True)
        checkpoint = Checkpoint(path, every=0.0)
        for i, length in enumerate(lengths):
            monkeypatch.setattr(_drive, "_TIMES_ASKED", -(-STEPS // length))
            pause = Pause((i + 1) * STEPS // (len(lengths) + 1))
            run(keys, NORMAL, MEAN_FIELD, stopping=pause, checkpoint=checkpoint)
        rest = run(keys, NORMAL, MEAN_FIELD, stopping=Pause(), checkpoint=checkpoint)
        for one, other in zip(rest, whole, strict=True):
            same(one, other)

    check()


@given(constant=st.floats(-1e6, 1e6))
@settings(FEW, max_examples=4)
def test_a_constant_in_log_p_changes_no_fit(constant):
    keys = jax.random.split(jax.random.key(0), 2)
    plain = run(keys, NORMAL, MEAN_FIELD)
    moved = run(keys, normal(constant), MEAN_FIELD)
    for one, other in zip(plain, moved, strict=True):
        for a, b in zip(
            *(numbers_of(r.posterior.guide) for r in (one, other)), strict=True
        ):
            np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(
            other.history.excess, one.history.excess, rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(
            other.history.elbo - constant, one.history.elbo, atol=1e-6
        )


@given(runs=st.integers(1, 5), seed=st.integers(0, 2**31))
@settings(FEW, max_examples=4)
def test_the_number_of_runs_changes_no_run(runs, seed):
    keys = jax.random.split(jax.random.key(seed), runs)
    together = run(keys, NORMAL, MEAN_FIELD)
    alone = softcvi.fit(
        keys[-1], NORMAL, MEAN_FIELD, steps=STEPS, start=None, progress=False
    ).posterior.guide
    pairs = zip(*map(numbers_of, (together[-1].posterior.guide, alone)), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
