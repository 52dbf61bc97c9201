"""Workarounds for the compiler: answers agree with all of them on and off."""

import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi import guides
from softcvi._compile import (
    _ahead,
    _room,
    as_array,
    host_fold_in,
    host_key,
    host_split,
    is_plain,
    make_room,
    plain_compilation,
    rarely_run,
    rehearse,
)

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
    needed = {"jit(advance_one)", "jit(_weigh)", "jit(advance)", "jit(_along)"}
    assert needed <= set(ahead)
    assert all(names.count(name) == 1 for name in needed - {"jit(_along)"})


@pytest.mark.skipif(not _room._MAPPINGS.exists(), reason="Linux bounds the mappings")
def test_programs_are_given_up_before_a_process_holds_too_many(monkeypatch):
    count = []

    @rarely_run
    def traced(x):
        count.append(x)
        return x + 1

    def taken():
        return len(_room._MAPPINGS.read_text().splitlines())

    assert not make_room()
    for i in range(20):
        traced(np.zeros(i + 1))
    many = taken()
    monkeypatch.setattr(_room, "_SHARE", 0.0)
    assert make_room()
    assert taken() < many
    traced(np.zeros(1))
    assert len(count) == 21
