"""Accuracy of the posterior mean (section on metrics)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree


def mean_accuracy(draws: PyTree, reference: PyTree) -> Array:
    """Negative L2 norm of the difference in means, in reference standard deviations.

    Args:
        draws: Draws of the guide, leaves with a leading axis.
        reference: Draws of the posterior, with the same names.

    Returns:
        A scalar; 0 is best.

    Example:
        >>> import jax.numpy as jnp
        >>> from softcvi.diagnostics import mean_accuracy
        >>> reference = {"x": jnp.array([-1.0, 1.0])}
        >>> float(mean_accuracy({"x": jnp.array([1.0, 1.0])}, reference))
        -1.0
    """

    def squared(ours, theirs):
        difference = jnp.mean(ours, axis=0) - jnp.mean(theirs, axis=0)
        return jnp.sum((difference / jnp.std(theirs, axis=0)) ** 2)

    picked = {k: draws[k] for k in reference} if isinstance(reference, dict) else draws
    parts = jax.tree_util.tree_map(squared, picked, reference)
    return -jnp.sqrt(sum(jax.tree_util.tree_leaves(parts)))
