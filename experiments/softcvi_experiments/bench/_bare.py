"""The least a fit can be: gradient and update in a compiled loop, and nothing else."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax
from jax.flatten_util import ravel_pytree

from softcvi._compile import fused
from softcvi.fitting import AbstractOptimizer
from softcvi.guides import AbstractGuide
from softcvi.objectives import AbstractObjective
from softcvi.targets import AbstractTarget


def bare_loop(
    target: AbstractTarget,
    guide: AbstractGuide,
    objective: AbstractObjective,
    optimizer: AbstractOptimizer,
) -> Callable[[int], object]:
    """The same steps as ``softcvi.fit`` without history, guards, chunks or a host.

    Args:
        target: The target.
        guide: The guide at its start.
        objective: The objective.
        optimizer: An optimiser of ``softcvi.fitting`` that works on a flat vector.

    Returns:
        Function that runs so many steps, in one call of one program.

    Example:
        >>> import softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> guide = softcvi.guides.mean_field(target)
        >>> optimizer = softcvi.fitting.paper_optimizer(1e-2)
        >>> run = bare_loop(target, guide, softcvi.SoftCVI(), optimizer)
        >>> run(10).shape
        (4,)
    """
    params, static = eqx.partition(
        guide,
        eqx.is_inexact_array,
        is_leaf=lambda leaf: isinstance(leaf, paramax.NonTrainable),
    )
    flat, unravel = ravel_pytree(params)
    numbers = jax.tree_util.tree_map(jnp.asarray, objective)

    # Everything with numbers is an argument: constants would be folded at leisure.
    @eqx.filter_jit
    def loop(key, flat, static, target, objective, optimizer, steps):
        def loss(flat, step):
            guide = paramax.unwrap(eqx.combine(unravel(flat), static))
            step_key = jax.random.fold_in(fused(key), step)
            return objective.loss(step_key, guide, paramax.unwrap(target))[0]

        def body(step, carry):
            flat, state = carry
            grads = jax.grad(loss)(flat, step)
            return optimizer.update(grads, state, flat, step, steps)

        return jax.lax.fori_loop(0, steps, body, (flat, optimizer.init(flat)))[0]

    def run(steps: int):
        length = jnp.asarray(steps, jnp.int32)
        return jax.block_until_ready(
            loop(jax.random.key(0), flat, static, target, numbers, optimizer, length)
        )

    return run
