"""Coverage of highest-density regions (section on metrics)."""

import jax.numpy as jnp
from jaxtyping import Array, Float


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
