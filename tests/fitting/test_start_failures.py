"""Models that raise before, during and after the loop."""

import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.adapters import from_callable


class Breaks:
    """A log density that raises from one call on."""

    def __init__(self, at):
        self.at, self.calls = at, 0

    def __call__(self, x):
        self.calls += 1
        if self.calls >= self.at:
            raise RuntimeError("the simulator broke")
        return -0.5 * float(np.sum((np.asarray(x) - 1.0) ** 2))


def fit(target, **options):
    return softcvi.fit(jax.random.key(0), target, progress=False, **options)


def guide_of(target):
    return softcvi.guides.mean_field(target)


@pytest.fixture
def _ctrl_c():
    # A shell starts jobs in the background with Ctrl-C ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_during_the_start_is_no_failure_of_the_model():
    def interrupted(x):
        signal.raise_signal(signal.SIGINT)
        return -0.5 * float(np.sum(np.asarray(x) ** 2))

    with pytest.raises(KeyboardInterrupt):
        fit(from_callable(interrupted, jnp.zeros(2)))


@pytest.mark.parametrize("has_guide", [False, True])
def test_a_model_that_raises_during_the_start(has_guide):
    target = from_callable(Breaks(3), jnp.zeros(2))
    guide = guide_of(target) if has_guide else None
    with pytest.raises(softcvi.FitError, match=r"during the start.*simulator broke"):
        fit(target, guide=guide)
    result = fit(target, guide=guide, throw=False)
    assert result.status == "failed"
    assert "the simulator broke" in result.message
    assert not result.verdict.trusted
    assert result.steps == 0
    assert result.posterior.sample(jax.random.key(0), 3)["value"].shape == (3, 2)


def test_the_ladder_names_it_too():
    target = from_callable(Breaks(3), jnp.zeros(2))
    with pytest.raises(softcvi.FitError, match=r"during the start.*simulator broke"):
        softcvi.fit_until(jax.random.key(0), target, progress=False)


def test_many_fits_say_so_one_by_one():
    target = from_callable(Breaks(3), jnp.zeros(2))
    keys = jax.random.split(jax.random.key(0), 2)
    results = softcvi.fit_many(keys, target, guide_of(target), progress=False)
    assert [result.status for result in results] == ["failed", "failed"]
    assert "the simulator broke" in results[1].message


def test_a_model_that_raises_after_the_loop_loses_nothing():
    model = Breaks(10**9)
    target = from_callable(model, jnp.zeros(2))
    result = fit(target, guide=guide_of(target), start=None, steps=20)
    model.at = 0
    assert not result.verdict.trusted
    assert "not a single importance weight is usable" in str(result.verdict)
    assert result.sample(jax.random.key(0), 5)["value"].shape == (5, 2)
