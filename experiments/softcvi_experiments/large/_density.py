"""Targets of named sites whose data are arguments of the compiled programs."""

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp

from softcvi import DensityTarget


def density(
    log_prob: Callable, shapes: Mapping[str, tuple[int, ...]], data: Mapping[str, Any]
) -> DensityTarget:
    """A target in unconstrained coordinates.

    Args:
        log_prob: Module-level function of the sites and of the data.
        shapes: Shape of each site.
        data: Arrays by name.

    Example:
        >>> target = density(lambda t, d: -0.5 * (t["x"] ** 2).sum(), {"x": (2,)}, {})
        >>> target.structure.size
        2
    """
    like = {name: jnp.zeros(shape) for name, shape in shapes.items()}
    observed = {name: jnp.asarray(value, float) for name, value in data.items()}
    return DensityTarget(log_prob, like, observed=observed)
