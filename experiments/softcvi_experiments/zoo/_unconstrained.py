"""A NumPyro model's density on the unconstrained space, for the peers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from numpyro.distributions import biject_to
from numpyro.infer import init_to_uniform
from numpyro.infer.util import initialize_model

from softcvi_experiments.zoo._model import ZooModel


@dataclass(frozen=True)
class Unconstrained:
    """Log density over a flat vector, and the maps between it and the sites."""

    log_density: Any
    start: jax.Array
    unravel: Any
    transforms: Mapping[str, Any]

    def constrain(self, flat: jax.Array) -> dict[str, jax.Array]:
        """Sites in model coordinates from one flat vector."""
        return {k: self.transforms[k](v) for k, v in self.unravel(flat).items()}

    def invert(self, draw: Mapping[str, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """Flat vector of one draw, and the log determinant of the way back."""
        free = {k: self.transforms[k].inv(v) for k, v in draw.items()}
        log_det = sum(
            jnp.sum(self.transforms[k].log_abs_det_jacobian(free[k], draw[k]))
            for k in draw
        )
        return ravel_pytree(free)[0], log_det


def unconstrain(model: ZooModel, key: jax.Array) -> Unconstrained:
    """Prepare a zoo model for methods that want a function of a flat vector.

    Example:
        >>> import jax
        >>> from softcvi_experiments import zoo
        >>> unconstrain(zoo.get("banana"), jax.random.key(0)).start.shape
        (2,)
    """
    info = initialize_model(
        key,
        model.model,
        init_strategy=init_to_uniform,
        model_args=model.args,
        model_kwargs=dict(model.kwargs),
        dynamic_args=False,
    )
    start, unravel = ravel_pytree(info.param_info.z)
    return Unconstrained(
        log_density=lambda flat: -info.potential_fn(unravel(flat)),
        start=start,
        unravel=unravel,
        transforms={
            name: biject_to(info.model_trace[name]["fn"].support)
            for name in info.param_info.z
        },
    )
