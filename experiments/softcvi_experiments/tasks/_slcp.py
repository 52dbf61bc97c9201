"""Simple likelihood, complex posterior: four symmetric modes in a box."""

import dataclasses

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi.demo import slcp_guide, slcp_log_prob
from softcvi.guides import VectorGuide
from softcvi.targets import DensityTarget
from softcvi_experiments.references import AbstractReferenceSource
from softcvi_experiments.tasks._task import (
    AbstractTask,
    RunData,
    gather_references,
)

_BOUND = 3.0
_NUM_OBSERVATIONS = 10
_TRIES = 8


def refresh_slcp(
    key: PRNGKeyArray,
    x: dict[str, Float[Array, " 5"]],
    observed: dict[str, Float[Array, "4 2"]],
) -> dict[str, Float[Array, " 5"]]:
    """From one posterior draw another one that shares its covariance.

    Given the covariance the location is a normal cut off at the box, and the signs of
    the two roots are free. A location is kept if eight new ones all miss the box.

    Args:
        key: Random key.
        x: A draw ``theta``.
        observed: The four points ``x``.

    Example:
        >>> x = {"theta": jnp.array([0.0, 0.0, 0.5, 0.5, 0.0])}
        >>> fresh = refresh_slcp(jr.key(0), x, {"x": jnp.zeros((4, 2))})["theta"]
        >>> jnp.abs(fresh[2:]).tolist()
        [0.5, 0.5, 0.0]
    """
    theta = x["theta"]
    location_key, sign_key = jr.split(key)
    first, second = jr.normal(location_key, (2, _TRIES)) / jnp.sqrt(4.0)
    mixed = jnp.tanh(theta[4]) * first + second / jnp.cosh(theta[4])
    offsets = theta[2:4] ** 2 * jnp.stack([first, mixed], axis=1)
    tries = jnp.concatenate([observed["x"].mean(axis=0) + offsets, theta[None, :2]])
    inside = jnp.all(jnp.abs(tries) <= _BOUND, axis=1)
    roots = jr.rademacher(sign_key, (2,)) * theta[2:4]
    return {"theta": jnp.concatenate([tries[jnp.argmax(inside)], roots, theta[4:]])}


class Slcp(AbstractTask):
    """SLCP (Papamakarios et al., 2019), ten observations in turn.

    The guide is a masked autoregressive spline flow on the prior's box.

    Example:
        >>> Slcp().posterior_name(12)
        'slcp_03'
    """

    name = "slcp"
    title = "SLCP"
    learning_rate = 1e-4

    def posterior_name(self, run: int) -> str:
        return f"slcp_{run % _NUM_OBSERVATIONS + 1:02d}"

    def data(
        self, key: PRNGKeyArray, runs: list[int], source: AbstractReferenceSource
    ) -> RunData:
        names = [self.posterior_name(run) for run in runs]
        data = gather_references(names, ("x",), source)
        return dataclasses.replace(data, refresh=refresh_slcp)

    def target(self, observed: dict[str, Array]) -> DensityTarget:
        return DensityTarget(slcp_log_prob, {"theta": jnp.zeros(5)}, observed=observed)

    def guide(self, key: PRNGKeyArray) -> VectorGuide:
        return slcp_guide(key)
