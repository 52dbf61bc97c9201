"""Mixtures of guides with learned weights."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar

from softcvi.guides._base import AbstractGuide
from softcvi.targets import Structure


class MixtureGuide(AbstractGuide):
    """A mixture of guides whose weights are trained with the components.

    SoftCVI needs no reparameterised draw, so the weights learn as everything else
    does; the ELBO's gradient ignores them.

    Args:
        components: Guides over the same particle.
        logits: Starting log weights; equal by default.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> parts = [softcvi.guides.mean_field(jnp.zeros(2)) for _ in range(3)]
        >>> guide = softcvi.guides.MixtureGuide(parts)
        >>> guide.weights.tolist()
        [0.3333333432674408, 0.3333333432674408, 0.3333333432674408]
    """

    components: list[AbstractGuide]
    logits: Float[Array, " m"]
    structure: Structure = eqx.field(static=True)

    def __init__(
        self,
        components: Sequence[AbstractGuide],
        logits: Float[Array, " m"] | None = None,
    ):
        if len(components) < 2:
            raise ValueError(
                f"components: a mixture needs at least 2; got {len(components)}."
            )
        first = components[0].structure
        for i, component in enumerate(components):
            difference = first.difference(component.structure)
            if difference:
                raise ValueError(f"components[{i}]: {difference}, as in the first.")
        self.components = list(components)
        self.logits = jnp.zeros(len(components)) if logits is None else logits
        self.structure = first

    @property
    def weights(self) -> Float[Array, " m"]:
        """The mixture weights."""
        return jax.nn.softmax(self.logits)

    def _sample(self, key: PRNGKeyArray, condition: PyTree = None) -> PyTree:
        pick_key, *keys = jax.random.split(key, len(self.components) + 1)
        draws = [
            component._sample(k, condition)
            for component, k in zip(self.components, keys, strict=True)
        ]
        pick = jax.random.categorical(pick_key, self.logits)
        return jax.tree_util.tree_map(lambda *leaves: jnp.stack(leaves)[pick], *draws)

    def _log_prob(self, particle: PyTree, condition: PyTree = None) -> Scalar:
        parts = jnp.stack(
            [component._log_prob(particle, condition) for component in self.components]
        )
        return jax.nn.logsumexp(parts + jax.nn.log_softmax(self.logits))

    @property
    def covers_reals(self) -> bool:
        return any(component.covers_reals for component in self.components)

    @property
    def suggested_rate(self) -> float:
        return min(component.suggested_rate for component in self.components)


def mixture(components: Sequence[AbstractGuide]) -> MixtureGuide:
    """A mixture of guides with equal starting weights that are trained.

    Args:
        components: Guides over the same particle, at different places.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> parts = [softcvi.guides.mean_field(jnp.zeros(2)) for _ in range(2)]
        >>> len(softcvi.guides.mixture(parts).components)
        2
    """
    return MixtureGuide(components)
