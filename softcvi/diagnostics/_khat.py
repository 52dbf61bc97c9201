"""k-hat of a posterior: how far its importance weights can be trusted."""

import jax
from jaxtyping import PRNGKeyArray

from softcvi.posterior import Posterior


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
