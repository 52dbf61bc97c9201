"""Bad input gets an error that names the argument, before anything is fitted."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flowjax.distributions import LogNormal

import softcvi
from softcvi import fitting

pytestmark = pytest.mark.wrong_types


def of(log_prob, like=None):
    return softcvi.DensityTarget(
        log_prob, np.zeros(2, np.float32) if like is None else like
    )


NAN = of(lambda x: jnp.nan * jnp.sum(x))
EMPTY = of(lambda x: jnp.where(jnp.sum(x**2) > 1e30, 0.0, -jnp.inf))
VECTOR = of(lambda x: -(x**2))
INTEGER = of(lambda x: jnp.sum(x > 0))
COARSE = of(lambda x: (-jnp.sum(x**2)).astype(jnp.bfloat16))
LINE = of(lambda t: -0.5 * jnp.sum(t["x"] ** 2), {"x": np.zeros(2, np.float32)})
POSITIVE = softcvi.guides.SiteGuide({"x": LogNormal(jnp.zeros(2))})
WRONG = {
    "unknown": softcvi.guides.mean_field({"y": jnp.zeros(2)}),
    "shape": softcvi.guides.mean_field({"x": jnp.zeros(3)}),
    "discrete": softcvi.guides.SiteGuide({"x": softcvi.guides.Bernoulli(jnp.zeros(2))}),
    "bare": softcvi.guides.mean_field(jnp.zeros(2)),
}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"key": 3}, TypeError, r"key: expected a JAX random key.*jax.random.key\(3\)"),
        ({"key": "a"}, TypeError, "key: expected a JAX random key"),
        ({"key": np.zeros(2, np.uint32)}, TypeError, "key: expected a JAX random key"),
        ({"key": jnp.zeros(3)}, TypeError, "key: expected a JAX random key"),
        ({"keys": 3}, ValueError, "key: expected one key.*fit_many"),
        ({"steps": 0}, ValueError, "steps: must be at least 1"),
        ({"steps": 10.5}, TypeError, "steps: expected an integer"),
        ({"learning_rate": -1e-3}, ValueError, "learning_rate: must be positive"),
        ({"learning_rate": 0.0}, ValueError, "learning_rate: must be positive"),
        (
            {"learning_rate": float("nan")},
            ValueError,
            "learning_rate: must be positive",
        ),
        ({"optimizer": "adam"}, TypeError, "optimizer: expected an optax"),
        (
            {"optimizer": fitting.paper_optimizer(1e-3), "learning_rate": 0.1},
            ValueError,
            "learning_rate: the optimizer given has its own",
        ),
        ({"start": "there"}, ValueError, "start: unknown 'there'"),
        ({"target": VECTOR}, ValueError, "target: the log density must be a scalar"),
        ({"target": INTEGER}, TypeError, "log_prob: the log density must be a float"),
        ({"target": COARSE}, TypeError, "log_prob: .*bfloat16, which is too coarse"),
        ({"target": lambda x: 0.0}, TypeError, "target: expected a softcvi target"),
        ({"guide": WRONG["unknown"]}, ValueError, r"guide: .*missing \['x'\]"),
        ({"guide": WRONG["shape"]}, ValueError, r"guide: .*shape \(3,\)"),
        ({"guide": WRONG["discrete"]}, ValueError, "guide: .*'x' is int32"),
        ({"guide": WRONG["bare"]}, ValueError, "guide: does not fit the target"),
        ({"guide": LogNormal(0.0)}, TypeError, "guide: expected a guide"),
        ({"guide": POSITIVE}, ValueError, "guide: lacks the target's support"),
    ],
)
def test_fit_refuses(change, error, message):
    arguments = {"steps": 50, "progress": False, "start": None, **change}
    key = arguments.pop("key", jax.random.key(0))
    key = jax.random.split(key, arguments.pop("keys")) if "keys" in arguments else key
    target = arguments.pop("target", LINE)
    like = target.like if isinstance(target, softcvi.DensityTarget) else jnp.zeros(2)
    guide = arguments.pop("guide", softcvi.guides.mean_field(like))
    with pytest.raises(error, match=message):
        softcvi.fit(key, target, guide, **arguments)


@pytest.mark.parametrize("start", [None, "auto"])
def test_nothing_usable_at_the_start_is_explained(start):
    arguments = {"steps": 50, "progress": False, "start": start}
    key, guide = jax.random.key(0), softcvi.guides.mean_field(jnp.zeros(2))
    with pytest.raises(ValueError, match="target: the log density is NaN at every"):
        softcvi.fit(key, NAN, guide, **arguments)
    with pytest.raises(ValueError, match="target: the log density is -inf at every"):
        softcvi.fit(key, EMPTY, guide, **arguments)


def test_many_fits_refuse_too():
    keys = jax.random.split(jax.random.key(0), 2)
    guide = softcvi.guides.mean_field(LINE)
    with pytest.raises(TypeError, match="keys: expected an array of keys"):
        softcvi.fit_many(jax.random.key(0), LINE, guide)
    with pytest.raises(ValueError, match="keys: there is none"):
        softcvi.fit_many(keys[:0], LINE, guide)
    with pytest.raises(ValueError, match="steps: must be at least 1"):
        softcvi.fit_many(keys, LINE, guide, steps=0)
    with pytest.raises(ValueError, match="steps: must be below"):
        softcvi.fit_many(keys, LINE, guide, steps=10**400)
    with pytest.raises(ValueError, match="start: one place does not suit"):
        softcvi.fit_many(keys, LINE, guide, start="prior", batched_target=True)
    with pytest.raises(ValueError, match="learning_rate: must be positive"):
        softcvi.fit_many(keys, LINE, guide, learning_rate=-1.0)
    with pytest.raises(ValueError, match="guide: lacks the target's support"):
        softcvi.fit_many(keys, LINE, POSITIVE)


def test_targets_and_rules_refuse():
    with pytest.raises(TypeError, match="log_prob: expected a function"):
        softcvi.DensityTarget(3.0, jnp.zeros(2))
    with pytest.raises(ValueError, match="like: a particle needs at least one array"):
        softcvi.DensityTarget(lambda x: 0.0, {})
    with pytest.raises(TypeError, match="like: 'mu' is no array of numbers but str"):
        softcvi.DensityTarget(lambda x: 0.0, {"mu": "one"})
    with pytest.raises(TypeError, match=r"guide: expected a guide of softcvi\.guides"):
        softcvi.Posterior(4, LINE)
    with pytest.raises(ValueError, match="seconds: must be positive"):
        fitting.TimeLimit(0.0)
    with pytest.raises(ValueError, match="evaluations: must be positive"):
        fitting.EvaluationLimit(0)
    with pytest.raises(ValueError, match="window: must lie in"):
        fitting.Plateau(window=0.7)


def test_discrete_targets_need_a_gradient_free_objective():
    target = of(lambda x: -1.0 * jnp.sum(x), np.zeros(2, np.int32))
    with pytest.raises(ValueError, match="objective: ELBO differentiates the model"):
        softcvi.fit(jax.random.key(0), target, objective=softcvi.ELBO())


def test_a_posterior_wider_than_numbers_reach_is_explained(target, guide):
    from softcvi.fitting._checks import explain_nothing_usable

    infinite = jax.tree_util.tree_map(
        lambda leaf: (
            jnp.full_like(leaf, jnp.inf) if eqx.is_inexact_array(leaf) else leaf
        ),
        guide,
    )
    words = explain_nothing_usable(jax.random.key(0), infinite, target)
    assert "wider than its floating-point numbers" in words
    assert "improper" in words
