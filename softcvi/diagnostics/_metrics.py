"""Metrics of the paper (section on metrics), and k-hat of a posterior."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from softcvi.posterior import Posterior


def coverage(
    log_q_draws: Float[Array, " n"],
    log_q_reference: Float[Array, " m"],
    nominal: Float[Array, " levels"] | None = None,
) -> tuple[Float[Array, " levels"], Float[Array, " levels"]]:
    """How often the guide's highest-density regions hold reference draws.

    The region of level c is bounded by the density quantile of the guide's own draws
    (Hyndman's approach), so nothing is integrated.

    Args:
        log_q_draws: Log density of the guide at its own draws.
        log_q_reference: Log density of the guide at draws from the posterior.
        nominal: Levels, by default 100 of them between 0 and 1.

    Returns:
        Nominal and actual coverage. Actual above nominal is cautious, below is
        overconfident.

    Example:
        >>> import jax.numpy as jnp
        >>> from softcvi.diagnostics import coverage
        >>> log_q = -jnp.linspace(0.0, 4.0, 1000)
        >>> nominal, actual = coverage(log_q, log_q, jnp.array([0.5]))
        >>> round(float(actual[0]), 2)
        0.5
    """
    nominal = jnp.linspace(0.005, 0.995, 100) if nominal is None else nominal
    thresholds = jnp.quantile(log_q_draws, 1 - nominal)
    actual = jnp.mean(log_q_reference[None, :] >= thresholds[:, None], axis=1)
    return nominal, actual


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


def reference_log_prob(posterior: Posterior, reference: PyTree) -> Array:
    """Mean log density of the guide at draws from the true posterior.

    Up to the posterior's entropy this is minus the forward KL: higher is better, and
    missing a part of the posterior is punished.

    Args:
        posterior: The fitted posterior.
        reference: Draws in model coordinates with a leading axis.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
        >>> value = softcvi.diagnostics.reference_log_prob(posterior, jnp.zeros((5, 2)))
        >>> round(float(value), 4)
        -1.8379
    """
    return posterior.log_prob(reference).mean()


def khat(posterior: Posterior, key: PRNGKeyArray | None = None, n: int = 4000) -> float:
    """Pareto k-hat of the importance weights of a posterior.

    Below 0.5 is good, up to 0.7 usable; above, the guide misses part of the posterior
    or is far from it. A guide in the wrong place can still have a small k-hat: read it
    together with ``softcvi.diagnostics.judge``.

    Args:
        posterior: The fitted posterior, with its target.
        key: Random key; a fixed one by default.
        n: Number of draws.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
        >>> softcvi.diagnostics.khat(posterior) < 0.5
        True
    """
    key = jax.random.key(0) if key is None else key
    return posterior.importance(key, n).khat
