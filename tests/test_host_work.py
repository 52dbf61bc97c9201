"""Small work is done without programs of its own, and gives JAX's own numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import softcvi
from softcvi import guides
from softcvi._compile import (
    fused,
    host_ravel,
    host_stack,
    host_unravel,
    plain_compilation,
)
from softcvi.diagnostics import improper_directions
from softcvi.fitting._loop import prepare
from softcvi.fitting._optimizer import as_optimizer
from softcvi.starts._double import as_density
from softcvi.starts._evaluator import Evaluator

TREE = {"a": np.arange(3.0), "b": np.ones((2, 2)), "c": np.float64(5.0)}


@pytest.fixture
def programs():
    """Names of the programs that were compiled."""
    heard = []

    def listen(event, seconds, **facts):
        if event == "/jax/core/compile/backend_compile_duration":
            heard.append(facts.get("fun_name"))

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield heard
    jax.monitoring.unregister_event_duration_listener(listen)


def equal(ours, theirs):
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    assert jax.tree.map(jnp.result_type, ours) == jax.tree.map(jnp.result_type, theirs)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (5, 1), (2, 3, 4), (2, 0, 3)])
def test_random_numbers_inside_programs_are_those_of_jax(shape, double):
    def draws(key):
        keys = jax.random.split(key, (2, 3))
        each = jax.vmap(jax.vmap(lambda k: jax.random.normal(k, shape)))(keys)
        folded = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(4))
        narrow = jax.vmap(lambda k: jax.random.bits(k, shape, "uint8"))(folded)
        return each, narrow, jax.random.randint(keys[1, 2], shape, 0, 9)

    with jax.enable_x64(double):
        key = jax.random.key(3)
        theirs = draws(key)
        equal(draws(fused(key)), theirs)
        equal(jax.jit(lambda k: draws(fused(k)))(key), theirs)


def test_numbers_are_drawn_inside_of_gradients_and_loops():
    def total(scale, key):
        def add(i, total):
            noise = jax.random.normal(jax.random.fold_in(key, i), (3,))
            return total + scale * noise.sum()

        return jax.lax.fori_loop(0, 4, add, 0.0)

    key = jax.random.key(0)
    gradient = jax.jit(jax.jacfwd(lambda scale: total(scale, fused(key))))
    np.testing.assert_allclose(gradient(2.0), jax.jacfwd(total)(2.0, key), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vectors_are_made_and_taken_apart_without_programs(dtype, programs):
    tree = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, dtype)), TREE)
    vector = host_ravel(tree)
    back, stacked = host_unravel(vector, tree), host_stack([tree["b"], tree["b"]])
    assert programs == []
    equal(vector, ravel_pytree(tree)[0])
    equal(back, tree)
    equal(stacked, jnp.stack([tree["b"], tree["b"]]))
    equal(jax.jit(host_ravel)(tree), vector)
    equal(jax.jit(lambda v: host_unravel(v, tree))(vector), tree)
    with plain_compilation():
        equal(host_ravel(tree), vector)


def test_trees_of_several_dtypes_are_left_to_jax():
    tree = {"a": jnp.ones(2, jnp.float32), "b": jnp.ones(2, jnp.float16)}
    equal(host_ravel(tree), ravel_pytree(tree)[0])
    equal(host_unravel(host_ravel(tree), tree), tree)


def bowl(x):
    return -0.5 * jnp.sum(x**2) + x[0]


def test_any_number_of_points_takes_one_call_of_one_program(programs):
    target = softcvi.DensityTarget(bowl, jnp.zeros(3))
    evaluate = Evaluator.of(as_density(target), 50)
    rng = np.random.default_rng(0)
    few, many = rng.normal(size=(7, 3)), rng.normal(size=(3 * 50 * evaluate.most, 3))
    assert evaluate.most > 10
    with evaluate.density.context():
        values = evaluate(few), evaluate(many)
    assert programs.count("jit(log_densities)") == 1
    for points, found in zip((few, many), values, strict=True):
        exact = -0.5 * np.sum(points**2, axis=1) + points[:, 0]
        np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-6)


def test_callbacks_are_asked_for_few_points_at_once():
    like = {"x": np.zeros(2)}
    target = softcvi.adapters.from_callable(lambda x: -np.sum(x["x"] ** 2), like=like)
    assert Evaluator.of(as_density(target), 50).most == 1


def flat_along(number):
    """A log density of six parameters with flat directions that are no axes."""

    def log_prob(x):
        sums = x[:-1] + x[1:]
        return -0.5 * jnp.sum(sums[number:] ** 2) - 1e-12 * jnp.sum(x**2)

    return log_prob


def test_any_number_of_flat_directions_takes_one_program(programs):
    draws = jax.random.normal(jax.random.key(0), (100, 6))
    found = []
    for number in (0, 3):
        target = softcvi.DensityTarget(flat_along(number), jnp.zeros(6))
        programs.clear()
        found.append(improper_directions(jax.random.key(1), target, draws))
        assert programs.count("jit(_along)") == 1
    assert all(found)


def test_a_mixture_and_the_state_of_a_fit_need_no_programs(programs):
    target = softcvi.DensityTarget(bowl, jnp.zeros(3))
    parts = [guides.full_rank(target), guides.full_rank(target)]
    logits = jnp.zeros(2)
    programs.clear()
    mixture = guides.MixtureGuide(parts, logits)
    assert programs == []
    optimizer = as_optimizer(None, 0.01, 0.01)
    state, run = prepare(
        jax.random.key(0), mixture, target, softcvi.SoftCVI(), optimizer, 2, 0
    )
    run.unpack(state.params)
    assert set(programs) <= {"jit(convert_element_type)"}
