"""Products of guides over a few coordinates each, and guides behind a bijection."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree, Scalar

from softcvi.guides._base import AbstractGuide, num_noise
from softcvi.guides._parameters import as_guide_structure
from softcvi.guides._stack import AbstractGroup, AbstractGrouped, grouped
from softcvi.targets import AbstractSpace, Structure


class MappedGuide(AbstractGuide):
    """A guide seen through a bijection: its draws are in the model's coordinates.

    Args:
        guide: The guide, in the fitting space.
        space: The bijection.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> space = softcvi.targets.UnconstrainedSpace(
        ...     {"tau": softcvi.targets.positive()}
        ... )
        >>> guide = softcvi.guides.mean_field({"tau": jnp.zeros(())})
        >>> mapped = softcvi.guides.MappedGuide(guide, space)
        >>> bool(mapped.sample(jax.random.key(0))["tau"] > 0)
        True
    """

    guide: AbstractGuide
    space: AbstractSpace

    @property
    def structure(self) -> Structure:
        return self.guide.structure

    def _sample(self, key: PRNGKeyArray, condition: PyTree = None) -> PyTree:
        return self.space.to_model(self.guide._sample(key, condition))

    def _log_prob(self, particle: PyTree, condition: PyTree = None) -> Scalar:
        inside, log_det = self.space.from_model_and_log_det(particle)
        return self.guide._log_prob(inside, condition) + log_det

    @property
    def has_noise(self) -> bool:
        return self.guide.has_noise

    def _sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        return self.guide._sample_noise(key)

    def _from_noise(
        self, noise: Float[Array, " noise"], condition: PyTree = None
    ) -> PyTree:
        return self.space.to_model(self.guide._from_noise(noise, condition))

    def noise_owner(self) -> np.ndarray:
        return self.guide.noise_owner()


class ProductGuide(AbstractGrouped):
    """Independent guides, each over some of the scalars of a particle.

    Those of one kind are kept as one stack of arrays, so that a program does not grow
    with their number.

    Args:
        components: Guides over vectors.
        coordinates: For each the scalars of the flat particle that it is about, in
            order; together all of them, each once.
        like: The target, or a pytree like one particle.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> parts = [softcvi.guides.full_rank(jnp.zeros(2)) for _ in range(2)]
        >>> guide = softcvi.guides.ProductGuide(parts, [[0, 3], [1, 2]], jnp.zeros(4))
        >>> guide.sample(jax.random.key(0)).shape
        (4,)
    """

    groups: tuple[AbstractGroup, ...]
    rows: tuple[Int[Array, "count k"], ...]
    structure: Structure = eqx.field(static=True)

    def __init__(
        self,
        components: Sequence[AbstractGuide],
        coordinates: Sequence[Sequence[int]],
        like: PyTree,
    ):
        self.structure = as_guide_structure(like)
        owned = np.sort(np.concatenate([np.asarray(own, int) for own in coordinates]))
        sizes = [component.structure.size for component in components]
        if sizes != [len(own) for own in coordinates] or not np.array_equal(
            owned, np.arange(self.structure.size)
        ):
            raise ValueError(
                "coordinates: each component needs one for each of its scalars, and "
                f"each of the {self.structure.size} scalars of a particle must belong "
                "to one component."
            )
        self.groups, places = grouped(components)
        order = np.argsort(places)
        bounds = np.cumsum([group.count for group in self.groups])[:-1]
        self.rows = tuple(
            jnp.asarray([coordinates[i] for i in some], jnp.int32)
            for some in np.split(order, bounds)
        )

    def _sample(self, key: PRNGKeyArray, condition: PyTree = None) -> PyTree:
        keys = jax.random.split(key, len(self.groups))
        each = [
            jax.random.split(group_key, group.count)
            for group, group_key in zip(self.groups, keys, strict=True)
        ]
        return self._joined(lambda one, key: one._sample(key, condition), each)

    def _joined(self, draw: Callable, given: Sequence[Array]) -> PyTree:
        """A particle from what ``draw`` makes of each component.

        Args:
            draw: Makes a particle of a component and of what it is given.
            given: For each group an array with a row for each component.
        """
        dtype = jnp.result_type(*self.structure.dtypes)
        vector = jnp.zeros(self.structure.size, dtype)
        for group, rows, own in zip(self.groups, self.rows, given, strict=True):

            def one(index: Array, value: Array, group: AbstractGroup = group):
                component = group.component(index)
                return component.structure.ravel(draw(component, value))

            vector = vector.at[rows].set(jax.vmap(one)(np.arange(group.count), own))
        return self.structure.unravel(vector)

    def _log_prob(self, particle: PyTree, condition: PyTree = None) -> Scalar:
        vector = self.structure.ravel(particle)
        total = jnp.zeros(())
        for group, rows in zip(self.groups, self.rows, strict=True):

            def one(index: Array, values: Array, group: AbstractGroup = group):
                component = group.component(index)
                return component._log_prob(
                    component.structure.unravel(values), condition
                )

            total += jnp.sum(jax.vmap(one)(np.arange(group.count), vector[rows]))
        return total

    def _sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        keys = jax.random.split(key, len(self.groups))
        parts = []
        for group, group_key in zip(self.groups, keys, strict=True):
            each = jax.random.split(group_key, group.count)
            drawn = jax.vmap(group.component(0)._sample_noise)(each)
            parts.append(jnp.ravel(drawn))
        return jnp.concatenate(parts)

    def _from_noise(
        self, noise: Float[Array, " noise"], condition: PyTree = None
    ) -> PyTree:
        sizes = [group.count * num_noise(group.component(0)) for group in self.groups]
        parts = jnp.split(noise, np.cumsum(sizes)[:-1])
        given = [
            part.reshape(group.count, -1)
            for part, group in zip(parts, self.groups, strict=True)
        ]
        return self._joined(lambda one, own: one._from_noise(own, condition), given)

    def noise_owner(self) -> np.ndarray:
        """Noise that moves a whole part moves the first scalar of that part first."""
        owners = []
        for group, rows in zip(self.groups, self.rows, strict=True):
            own = np.maximum(group.component(0).noise_owner(), 0)
            owners.append(np.asarray(rows)[:, own].ravel())
        return np.concatenate(owners)

    @property
    def covers_reals(self) -> bool:
        return all(group.guide.covers_reals for group in self.groups)
