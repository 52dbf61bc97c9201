"""Blocks by what the numbers stand for: a site, or one index of a plate."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from softcvi.objectives._blocks import AbstractMaskedBlocks, check_count
from softcvi.targets import Structure


class AbstractGroupBlocks(AbstractMaskedBlocks):
    """Blocks from groups of scalars; noise that moves all scalars is one more group."""

    @abstractmethod
    def groups(self, structure: Structure) -> np.ndarray:
        """The number of the group of each scalar of a particle, from zero."""

    def masks(self, key, guide, num_noise):
        groups = self.groups(guide.structure)
        owner = guide.noise_owner()
        of_noise = np.where(owner < 0, groups.max() + 1, groups[owner])
        names = np.unique(of_noise)
        first = jax.random.randint(key, (), 0, len(names))
        # Spread over the groups: the sets of one step seldom have the same.
        picked = (first + np.arange(self.sets) * len(names) // self.sets) % len(names)
        return jnp.asarray(of_noise) == jnp.asarray(names)[picked][:, None]


class SiteBlocks(AbstractGroupBlocks):
    """Each set differs in the noise of one named site.

    Args:
        sets: Sets of K particles per step.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> like = softcvi.targets.Structure({"a": 0.0, "b": jnp.zeros(2)})
        >>> softcvi.objectives.SiteBlocks().groups(like).tolist()
        [0, 1, 1]
    """

    sets: int = eqx.field(static=True, default=8)

    def __check_init__(self):
        check_count("sets", self.sets)

    def groups(self, structure: Structure) -> np.ndarray:
        return np.repeat(np.arange(len(structure.sizes)), structure.sizes)


class PlateBlocks(AbstractGroupBlocks):
    """Each set differs in the noise of one index of a plate, or in that of the rest.

    Args:
        sites: Names of the sites of the plate, which share one axis.
        axis: That axis.
        sets: Sets of K particles per step.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> like = softcvi.targets.Structure({"mu": 0.0, "theta": jnp.zeros(3)})
        >>> softcvi.objectives.PlateBlocks(("theta",)).groups(like).tolist()
        [3, 0, 1, 2]
    """

    sites: tuple[str, ...] = eqx.field(static=True, converter=tuple)
    axis: int = eqx.field(static=True, default=0)
    sets: int = eqx.field(static=True, default=8)

    def __check_init__(self):
        check_count("sets", self.sets)

    def groups(self, structure: Structure) -> np.ndarray:
        shapes = dict(zip(structure.names, structure.shapes, strict=True))
        unknown = [name for name in self.sites if name not in shapes]
        if unknown or not self.sites:
            raise ValueError(
                f"sites: {unknown or 'none given'}; the particle has {list(shapes)}."
            )
        lengths = {
            name: shapes[name][self.axis] if len(shapes[name]) > self.axis else None
            for name in self.sites
        }
        if len(set(lengths.values())) != 1 or None in lengths.values():
            raise ValueError(
                f"sites: need one length along axis {self.axis}; it is {lengths}."
            )
        length = next(iter(lengths.values()))
        parts = []
        for name, shape in shapes.items():
            index = np.full(shape, length)
            if name in self.sites:
                index = np.indices(shape)[self.axis]
            parts.append(index.reshape(-1))
        return np.concatenate(parts)
