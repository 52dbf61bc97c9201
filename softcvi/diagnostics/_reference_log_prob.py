"""Mean log probability of reference draws (section on metrics)."""

from jaxtyping import Array, PyTree

from softcvi.posterior import Posterior


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
