"""Mixtures of guides with learned weights."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar

from softcvi.guides._base import AbstractGuide, num_noise
from softcvi.guides._stack import (
    AbstractGroup,
    AbstractGrouped,
    grouped,
    sample_from,
    split_keys,
)
from softcvi.targets import Structure


class MixtureGuide(AbstractGrouped):
    """A mixture of guides whose weights are trained with the components.

    SoftCVI needs no reparameterised draw, so the weights learn as everything else
    does; the ELBO's gradient ignores them. Components of one kind are kept as one
    stack of arrays: the program is the same for two of them and for a hundred, and a
    draw costs that of one component.

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

    groups: tuple[AbstractGroup, ...]
    logits: Float[Array, " m"]
    places: tuple[int, ...] = eqx.field(static=True)
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
        logits = jnp.zeros(len(components)) if logits is None else jnp.asarray(logits)
        if logits.shape != (len(components),):
            raise ValueError(
                f"logits: one number per component needed; got shape {logits.shape} "
                f"for {len(components)} components."
            )
        self.groups, self.places = grouped(components)
        self.logits = logits
        self.structure = first

    @property
    def weights(self) -> Float[Array, " m"]:
        """The mixture weights, in the order of the components."""
        return jax.nn.softmax(self.logits)

    @property
    def components(self) -> list[AbstractGuide]:
        """The components in the order given, each a guide of its own."""
        row = [group.component(i) for group in self.groups for i in range(group.count)]
        return [row[place] for place in self.places]

    def _row_logits(self) -> Float[Array, " m"]:
        """Log weights in the order in which the groups have the components."""
        return self.logits[np.argsort(self.places)]

    def _sample(self, key: PRNGKeyArray, condition: PyTree = None) -> PyTree:
        pick_key, keys = split_keys(key, self.groups)
        place = jax.random.categorical(pick_key, self._row_logits())
        return sample_from(
            self.groups,
            place,
            lambda number, component: component._sample(keys[number], condition),
        )

    def _log_prob(self, particle: PyTree, condition: PyTree = None) -> Scalar:
        parts = [group.log_probs(particle, condition) for group in self.groups]
        log_weights = jax.nn.log_softmax(self._row_logits())
        return jax.nn.logsumexp(jnp.concatenate(parts) + log_weights)

    @property
    def covers_reals(self) -> bool:
        return any(group.guide.covers_reals for group in self.groups)

    def _sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        """A uniform number for the choice, then the noise of each kind of component."""
        pick_key, keys = split_keys(key, self.groups)
        parts = [jax.random.uniform(pick_key, (1,), self.logits.dtype)]
        for group, group_key in zip(self.groups, keys, strict=True):
            parts.append(group.component(0)._sample_noise(group_key))
        return jnp.concatenate(parts)

    def _from_noise(
        self, noise: Float[Array, " noise"], condition: PyTree = None
    ) -> PyTree:
        edges = jnp.cumsum(jax.nn.softmax(self._row_logits()))[:-1]
        place = jnp.sum(noise[0] >= edges)
        sizes = [num_noise(group.component(0)) for group in self.groups]
        parts = jnp.split(noise[1:], np.cumsum(sizes)[:-1])
        return sample_from(
            self.groups,
            place,
            lambda number, component: component._from_noise(parts[number], condition),
        )

    def noise_owner(self) -> np.ndarray:
        owners = [group.component(0).noise_owner() for group in self.groups]
        return np.concatenate([[-1], *owners])


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
