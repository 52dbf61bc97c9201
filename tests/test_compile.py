"""Workarounds for the compiler: answers agree with all of them on and off."""

import gc
import threading
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import softcvi
from softcvi import guides
from softcvi._compile import (
    _ahead,
    as_array,
    collected_rarely,
    host_fold_in,
    host_key,
    host_split,
    is_plain,
    make_room,
    plain_compilation,
    products_on_one_core,
    rarely_run,
    rehearse,
)
from softcvi.fitting._loop import advance_by_effort, advance_one
from softcvi.fitting._train import advance_for
from softcvi.targets._cost import on_one_core

MAPPINGS = Path("/proc/self/maps")
SMALL = {"layers": 1, "width": 4, "knots": 2}


def centred_at_one(x):
    return -0.5 * jnp.sum((x - 1.0) ** 2)


@pytest.mark.parametrize("objective", [softcvi.SoftCVI(), softcvi.ELBO()])
def test_answers_agree_with_and_without(objective):
    target = softcvi.DensityTarget(centred_at_one, np.zeros(2, np.float32))
    flow = guides.spline_flow(target, key=jax.random.key(0), **SMALL)

    def answers():
        result = softcvi.fit(
            jax.random.key(1),
            target,
            flow,
            objective=objective,
            steps=20,
            start=None,
            progress=False,
        )
        draws = result.posterior.sample(jax.random.key(2), 9000)
        arrays = jax.tree.leaves(eqx.filter(result.posterior.guide, eqx.is_array))
        return [*arrays, *draws.values(), result.history.excess]

    with_them = answers()
    with plain_compilation():
        without = answers()
    for one, other in zip(with_them, without, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


def test_there_is_one_switch(monkeypatch):
    assert not is_plain()
    with plain_compilation():
        assert is_plain()
    monkeypatch.setenv("SOFTCVI_PLAIN_COMPILE", "1")
    assert is_plain()


def test_nothing_of_it_is_public():
    assert "fused" not in softcvi.fitting.__all__
    public = {name for name in dir(softcvi) if not name.startswith("_")}
    assert not public & {"plain_compilation", "rarely_run", "computed_once"}


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys_made_on_the_host_are_those_of_jax(impl):
    def same(one, other):
        data = (np.asarray(jax.random.key_data(key)) for key in (one, other))
        np.testing.assert_array_equal(*data)

    key = jax.random.fold_in(jax.random.key(5, impl=impl), 2**31)
    same(jnp.stack(host_split(key, 7)), jax.random.split(key, 7))
    for number in (0, 1, 2**32 - 1):
        same(host_fold_in(key, number), jax.random.fold_in(key, np.uint32(number)))
    same(host_key(2**32 - 1), jax.random.key(2**32 - 1))
    with plain_compilation():
        same(jnp.stack(host_split(key, 7)), jax.random.split(key, 7))


@pytest.mark.parametrize("dtype", [float, np.float32, int])
def test_arrays_made_on_the_host_are_those_of_jax(dtype):
    for double in (False, True):
        with jax.enable_x64(double):
            ours, theirs = as_array([1, 2], dtype), jnp.asarray([1, 2], dtype)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.fixture
def compilations():
    """Names of the programs that were compiled, and the threads that did it."""
    heard = []

    def listen(event, seconds, **facts):
        if event == "/jax/core/compile/backend_compile_duration":
            heard.append((facts.get("fun_name"), threading.current_thread().name))

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield heard
    jax.monitoring.unregister_event_duration_listener(listen)


@pytest.mark.parametrize("double", [False, True])
def test_what_was_rehearsed_is_not_compiled_again(double, compilations, monkeypatch):
    monkeypatch.setattr(_ahead, "_cores", lambda: 2)

    @rarely_run
    def squared(x):
        return {"a": x**2, "b": jnp.sum(x) > 0}

    @rarely_run
    def after(found):
        return found["a"] + 1.0

    def both(x):
        return after(squared(x))

    with jax.enable_x64(double):
        x = as_array([1.0, 2.0])
        compilations.clear()
        rehearse(both, x)
        answer = both(x)
        rehearse(both, x)  # nothing more to do
    np.testing.assert_array_equal(answer, [2.0, 5.0])
    names = [name for name, _ in compilations]
    assert sorted(n for n in names if "after" in n or "squared" in n) == [
        "jit(after)",
        "jit(squared)",
    ]
    assert all(thread.startswith("softcvi-compile") for name, thread in compilations)


def test_rehearsals_have_no_say(monkeypatch):
    monkeypatch.setattr(_ahead, "_cores", lambda: 2)
    calls = []

    def fails(x):
        calls.append(x)
        raise ValueError("made-up numbers")

    rehearse(fails, 1.0)
    assert calls == [1.0]
    with plain_compilation():
        rehearse(fails, np.zeros(3))
    monkeypatch.setattr(_ahead, "_cores", lambda: 1)
    rehearse(fails, np.zeros(4))
    assert calls == [1.0]


def test_a_fit_compiles_nothing_after_its_rehearsal(compilations, monkeypatch):
    monkeypatch.setattr(_ahead, "_cores", lambda: 2)
    target = softcvi.DensityTarget(
        lambda x: -0.5 * jnp.sum((x - 2.0) ** 2), np.zeros(3, np.float32)
    )
    result = softcvi.fit(jax.random.key(1), target, steps=50, progress=False)
    assert result.verdict.trusted
    ahead = [n for n, thread in compilations if thread.startswith("softcvi-compile")]
    names = [name for name, _ in compilations]
    needed = {"jit(_advance_one)", "jit(_weigh)", "jit(advance)", "jit(_along)"}
    assert needed <= set(ahead)
    assert all(names.count(name) == 1 for name in needed - {"jit(_along)"})


def test_a_model_is_traced_once_for_all_programs():
    calls = []

    def log_prob(x):
        calls.append(x)
        return -0.5 * jnp.sum((x - 1.0) ** 2)

    target = softcvi.DensityTarget(log_prob, np.zeros(2, np.float32))
    calls.clear()

    def programs(x):
        value = jax.jit(lambda x: target.log_density(x))(x)
        slope = jax.jit(lambda x: jax.grad(target.log_density)(x))(x)
        curvature = jax.jit(jax.hessian(lambda x: target.log_density(x)))(x)
        many = jax.jit(lambda xs: jax.vmap(target.log_density)(xs))(jnp.stack([x, -x]))
        return value, slope, curvature, many

    x = jnp.asarray([0.5, 3.0], jnp.float32)
    found = programs(x)
    assert len(calls) == 1
    with plain_compilation():
        expected = programs(x)
    assert len(calls) > 1
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_outside_of_programs_a_density_is_called_as_it_is():
    target = softcvi.DensityTarget(
        lambda x: jnp.where(isinstance(x, jax.core.Tracer), 1.0, 2.0),
        np.zeros(2, np.float32),
    )
    x = jnp.zeros(2, jnp.float32)
    assert target.log_density(x) == 2.0
    assert jax.jit(target.log_density)(x) == 1.0


@pytest.mark.skipif(not MAPPINGS.exists(), reason="Linux bounds the mappings")
def test_programs_are_given_up_before_a_process_holds_too_many():
    count = []

    @rarely_run
    def traced(x):
        count.append(x)
        return x + 1

    def taken():
        return len(MAPPINGS.read_text().splitlines())

    assert not make_room()
    for i in range(20):
        traced(np.zeros(i + 1))
    many = taken()
    assert make_room(share=0.0)
    assert taken() < many
    traced(np.zeros(1))
    assert len(count) == 21


def test_loops_with_little_to_do_are_compiled_quickly():
    target = softcvi.DensityTarget(centred_at_one, np.zeros(2, np.float32))
    many = softcvi.DensityTarget(
        lambda x: centred_at_one(x) + jnp.sum(jnp.sin(x[0] + jnp.arange(1e5))),
        np.zeros(2, np.float32),
    )

    def program(target, params=10, steps=10_000):
        return advance_for(target, softcvi.SoftCVI(), np.zeros(params), steps)

    some = softcvi.DensityTarget(
        lambda x: centred_at_one(x) + jnp.sum(jnp.sin(x[0] + jnp.arange(1e3))),
        np.zeros(2, np.float32),
    )
    at_once, quickly = advance_by_effort
    assert program(target) is at_once
    assert program(some) is quickly
    assert program(target, params=20_000) is advance_one
    assert program(target, steps=10**9) is advance_one
    assert program(many) is advance_one
    assert program(many, steps=100) is quickly


@pytest.fixture
def thresholds():
    before = gc.get_threshold()
    yield gc
    gc.set_threshold(*before)


@pytest.mark.parametrize("usual", [(700, 10, 10), (90_000, 5, 5), (0, 10, 10)])
def test_garbage_is_looked_for_as_before_once_a_fit_has_ended(usual, thresholds):
    thresholds.set_threshold(*usual)
    seen = []

    def log_prob(x):
        seen.append(thresholds.get_threshold())
        return centred_at_one(x)

    target = softcvi.DensityTarget(log_prob, np.zeros(2, np.float32))
    softcvi.fit(jax.random.key(0), target, steps=20, progress=False)
    assert thresholds.get_threshold() == usual
    # Rarely during the fit, unless whoever called it has it rarer still, or not at all.
    rarely = (50_000, 10, 10) if usual[0] == 700 else usual
    assert seen[-1] == rarely


def test_the_last_of_several_calls_restores_the_search_for_garbage(thresholds):
    thresholds.set_threshold(700, 10, 10)

    @collected_rarely
    def outer():
        with pytest.raises(ValueError, match="inner"):
            inner()
        return thresholds.get_threshold()[0]

    @collected_rarely
    def inner():
        raise ValueError("inner")

    assert outer() == 50_000
    assert thresholds.get_threshold() == (700, 10, 10)
    with plain_compilation():
        assert outer() == 700


def test_a_threshold_that_is_set_during_a_call_is_kept(thresholds):
    thresholds.set_threshold(700, 10, 10)
    collected_rarely(thresholds.set_threshold)(1_000, 10, 10)
    assert thresholds.get_threshold() == (1_000, 10, 10)


def _own_library(part_of_path):
    """The library for matrices that a wheel has brought; skips where it has none."""
    loaded = ThreadpoolController()
    paths = [library["filepath"] for library in loaded.info()]
    own = loaded.select(filepath=[path for path in paths if part_of_path in path])
    if not own.info():
        pytest.skip(f"no library of its own in {part_of_path}")
    return own


def test_factors_of_a_model_stay_on_one_core_where_they_are_small():
    import scipy.linalg.cython_blas  # noqa: F401

    own = _own_library("scipy.libs")

    def threads(rows):
        def log_prob(x):
            return -jnp.sum(jnp.linalg.cholesky(jnp.eye(rows) * jnp.exp(x[0])) ** 2)

        target = softcvi.DensityTarget(log_prob, np.zeros(2, np.float32))
        with on_one_core(target):
            return own.info()[0]["num_threads"]

    with own.limit(limits=2):
        assert (threads(40), threads(400)) == (1, 2)
        assert own.info()[0]["num_threads"] == 2


@pytest.fixture
def numpy_threads():
    """Reads on how many threads NumPy multiplies; two of them, on any machine."""
    own = _own_library("numpy")
    with own.limit(limits=2):
        yield lambda: own.info()[0]["num_threads"]


def test_small_products_are_made_on_one_core_for_a_while(numpy_threads):
    with products_on_one_core(2, 0):
        with products_on_one_core(2, 0):
            assert numpy_threads() == 1
        assert numpy_threads() == 1
    assert numpy_threads() == 2
    with products_on_one_core(10_000, 0):
        assert numpy_threads() == 2
    with plain_compilation(), products_on_one_core(2, 0):
        assert numpy_threads() == 2


def test_a_fit_searches_with_products_on_one_core(numpy_threads):
    seen = []

    class Reading(softcvi.starts.Explore):
        def find(self, key, target):
            seen.append(numpy_threads())
            return super().find(key, target)

    target = softcvi.DensityTarget(centred_at_one, np.zeros(2, np.float32))
    softcvi.starts.InBestSpace(Reading()).find(jax.random.key(0), target)
    assert set(seen) == {1}
    assert numpy_threads() == 2


def test_other_threads_leave_products_alone(numpy_threads):
    entered, leave = threading.Event(), threading.Event()

    def other():
        with products_on_one_core(2, 0):
            entered.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with products_on_one_core(2, 0):
        thread.start()
        entered.wait()
    assert numpy_threads() == 2
    leave.set()
    thread.join()
    assert numpy_threads() == 2
