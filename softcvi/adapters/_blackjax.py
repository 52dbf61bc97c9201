"""The shape of BlackJAX's variational algorithms, for people with their own loops."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import optax
import paramax
from jaxtyping import PRNGKeyArray, PyTree

from softcvi.fitting._loop import step_loss
from softcvi.guides import AbstractGuide, full_rank
from softcvi.objectives import AbstractObjective, SoftCVI, StepInfo
from softcvi.targets import AbstractTarget


class VIState(NamedTuple):
    """What the next step needs.

    Attributes:
        params: Trainable arrays of the guide.
        opt_state: State of the optimiser.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> from softcvi.adapters import as_blackjax
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> as_blackjax(target).init()._fields
        ('params', 'opt_state')
    """

    params: PyTree
    opt_state: PyTree


class VIAlgorithm(NamedTuple):
    """``init``, ``step`` and ``sample``, as ``blackjax.base.VIAlgorithm``.

    Attributes:
        init: ``init() -> state``.
        step: ``step(key, state) -> (state, info)``; can be jitted and scanned.
        sample: ``sample(key, state, num_samples) -> draws`` in model coordinates; for
            an amortised target with ``condition=datum``.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> from softcvi.adapters import as_blackjax
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> as_blackjax(target)._fields
        ('init', 'step', 'sample')
    """

    init: Callable[..., VIState]
    step: Callable[[PRNGKeyArray, VIState], tuple[VIState, StepInfo]]
    sample: Callable[..., PyTree]


def as_blackjax(
    target: AbstractTarget,
    guide: AbstractGuide | None = None,
    *,
    objective: AbstractObjective | None = None,
    optimizer: optax.GradientTransformation | None = None,
) -> VIAlgorithm:
    """A SoftCVI fit as a triple of pure functions.

    There is no start-up phase, no guard and no schedule here: those are the loop's,
    and the loop is yours. ``softcvi.fit`` has them.

    Args:
        target: The target.
        guide: The guide; a full-rank normal by default.
        objective: ``SoftCVI()`` by default.
        optimizer: An optax transformation; Adam at the guide's own rate by default.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> from softcvi.adapters import as_blackjax
        >>> target = softcvi.DensityTarget(
        ...     lambda t: -0.5 * jnp.sum((t["x"] - 2.0) ** 2), {"x": jnp.zeros(2)}
        ... )
        >>> algorithm = as_blackjax(target)
        >>> def one(state, key):
        ...     return algorithm.step(key, state)
        >>> keys = jax.random.split(jax.random.key(0), 1000)
        >>> state, info = jax.lax.scan(one, algorithm.init(), keys)
        >>> draws = algorithm.sample(jax.random.key(1), state, 1000)
        >>> bool(abs(draws["x"].mean() - 2.0) < 0.2)
        True
    """
    guide = full_rank(target) if guide is None else guide
    objective = SoftCVI() if objective is None else objective
    optimizer = optax.adam(guide.suggested_rate) if optimizer is None else optimizer
    start, static = eqx.partition(
        guide,
        eqx.is_inexact_array,
        is_leaf=lambda leaf: isinstance(leaf, paramax.NonTrainable),
    )

    def init(params: PyTree = None) -> VIState:
        params = start if params is None else params
        return VIState(params, optimizer.init(params))

    def step(key: PRNGKeyArray, state: VIState) -> tuple[VIState, StepInfo]:
        def loss(params):
            current = paramax.unwrap(eqx.combine(params, static))
            return step_loss(key, current, target, objective, False)

        (_, info), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
        updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
        return VIState(optax.apply_updates(state.params, updates), opt_state), info

    def sample(
        key: PRNGKeyArray, state: VIState, num_samples: int = 1, condition: Any = None
    ) -> Any:
        if target.amortised and condition is None:
            raise ValueError(
                "condition: each datum of this target has a posterior of its own; give "
                "the datum to draw for."
            )
        current = eqx.combine(state.params, static)

        def one(key):
            particle = current.sample(key, condition)
            return target.describe(target.space.to_model(particle))

        return jax.vmap(one)(jax.random.split(key, num_samples))

    return VIAlgorithm(init, step, sample)
