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
from softcvi.fitting import AbstractStoppingRule, Checkpoint
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


LIKE = {"a": np.zeros(2), "b": np.zeros(())}
GUIDES = {
    "mean-field": lambda: guides.mean_field(LIKE),
    "full rank": lambda: guides.full_rank(LIKE, scale=2.0),
    "Student's t": lambda: guides.student_t(LIKE),
    "low rank": lambda: guides.low_rank(LIKE),
    "flow": lambda: guides.spline_flow(LIKE, key=jax.random.key(1), layers=1),
}


@pytest.mark.parametrize("name", GUIDES)
def test_sample_and_log_prob_agree_and_a_batch_equals_single_draws(name):
    guide = GUIDES[name]()

    @jax.jit
    def alone(key):
        draw, log_q = guide.sample_and_log_prob(key)
        return draw, log_q, guide.sample(key), guide.log_prob(draw)

    batched = jax.jit(jax.vmap(alone))

    @given(seeds=st.lists(st.integers(0, 2**31), min_size=3, max_size=3))
    @FEW
    def check(seeds):
        keys = jnp.stack([jax.random.key(seed) for seed in seeds])
        together = batched(keys)
        for i in range(len(seeds)):
            one = alone(keys[i])
            np.testing.assert_allclose(one[1], one[3], rtol=1e-6, atol=1e-6)
            for a, b in zip(*map(jax.tree.leaves, (one[0], one[2])), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
            ith = jax.tree.map(lambda leaf, i=i: leaf[i], together)
            for a, b in zip(*map(jax.tree.leaves, (one, ith)), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)

    check()


def numbers_of(tree):
    return jax.tree.leaves(eqx.filter(tree, eqx.is_array))


def density(x):
    return -0.5 * jnp.sum((x - 1.0) ** 2)


# One target and guide, so that programs are compiled once.
with jax.enable_x64(True):
    NORMAL = DensityTarget(density, jnp.zeros(2))
    MEAN_FIELD = guides.mean_field(NORMAL)


class Pause(AbstractStoppingRule):
    step: int
    follows_clock = True

    def reason(self, progress):
        return "a pause" if progress.step >= self.step else None


def run(keys, target, guide, **options):
    options = {"steps": 60, "start": None, "progress": False, **options}
    return softcvi.fit_many(keys, target, guide, **options)


def same(one, other):
    pairs = zip(*(numbers_of(r.posterior.guide) for r in (one, other)), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)
    np.testing.assert_array_equal(one.history.excess, other.history.excess)


def test_where_a_fit_is_cut_into_chunks_changes_nothing(tmp_path):
    target, guide = NORMAL, MEAN_FIELD
    keys = jax.random.split(jax.random.key(0), 2)
    whole = run(keys, target, guide)

    @given(pauses=st.lists(st.integers(1, 59), min_size=1, max_size=3))
    @settings(FEW, max_examples=4)
    def check(pauses):
        path = tmp_path / "fit.checkpoint"
        path.unlink(missing_ok=True)
        checkpoint = Checkpoint(path, every=0.0)
        for pause in sorted(pauses):
            run(keys, target, guide, stopping=Pause(pause), checkpoint=checkpoint)
        for one, other in zip(
            run(keys, target, guide, checkpoint=checkpoint), whole, strict=True
        ):
            same(one, other)

    check()


@given(runs=st.integers(1, 5), seed=st.integers(0, 2**31))
@settings(FEW, max_examples=4)
def test_the_number_of_runs_changes_no_run(runs, seed):
    keys = jax.random.split(jax.random.key(seed), runs)
    together = run(keys, NORMAL, MEAN_FIELD)
    alone = softcvi.fit(
        keys[-1], NORMAL, MEAN_FIELD, steps=60, start=None, progress=False
    ).posterior.guide
    pairs = zip(*map(numbers_of, (together[-1].posterior.guide, alone)), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
