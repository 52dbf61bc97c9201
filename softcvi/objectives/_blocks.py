"""Blocks: which numbers of the guide's noise the particles of one set differ in.

The gradient of SoftCVI vanishes at the posterior for *every* set of particles. So the
K particles of a set may share most of the noise they are made from and differ in one
block of it: their log ratios then vary with the size of the block and not with the
dimension, and no single label takes all the weight.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray, Scalar

from softcvi.guides import AbstractGuide
from softcvi.objectives._contrast import StepInfo
from softcvi.objectives._particles import (
    AbstractProposal,
    Particles,
    draw_particles,
    draw_sets,
)
from softcvi.targets import AbstractTarget, Structure

_LARGEST, _SMALLEST = 64, 2

Value = Callable[[Particles, bool | Array], tuple[Scalar, StepInfo]]


class AbstractBlocks(eqx.Module):
    """How the particles of a step are made and joined to one loss.

    Attributes:
        shares_noise: Whether particles are made from the guide's noise, which the
            guide must have then.

    Example:
        >>> import softcvi
        >>> softcvi.SoftCVI(blocks=softcvi.objectives.RandomBlocks(4, sets=2)).blocks
        RandomBlocks(size=4, sets=2)
    """

    shares_noise: ClassVar[bool]

    @abstractmethod
    def num_evaluations(self, num_particles: int) -> int:
        """Log densities that a step evaluates."""

    @abstractmethod
    def draw(
        self,
        key: PRNGKeyArray,
        guide: AbstractGuide,
        target: AbstractTarget,
        proposal: AbstractProposal,
        num_particles: int,
        data: Any = None,
    ) -> Particles:
        """Draw and evaluate the particles of one step."""

    @abstractmethod
    def value(
        self, value: Value, particles: Particles, starting: bool | Array
    ) -> tuple[Scalar, StepInfo]:
        """The loss of the particles, by a function for one set of them."""


class NoBlocks(AbstractBlocks):
    """One set of K whole particles, as in the paper.

    Example:
        >>> import softcvi
        >>> softcvi.objectives.NoBlocks().num_evaluations(8)
        8
    """

    shares_noise: ClassVar[bool] = False

    def num_evaluations(self, num_particles: int) -> int:
        return num_particles

    def draw(self, key, guide, target, proposal, num_particles, data=None):
        return draw_particles(key, guide, target, proposal, num_particles, data)

    def value(self, value, particles, starting):
        return value(particles, starting)


class AbstractMaskedBlocks(AbstractBlocks):
    """Sets of particles, each with a block of its own.

    Attributes:
        sets: How many sets a step has.
    """

    sets: eqx.AbstractVar[int]
    shares_noise: ClassVar[bool] = True

    @abstractmethod
    def masks(
        self, key: PRNGKeyArray, guide: AbstractGuide, num_noise: int
    ) -> Bool[Array, "sets noise"]:
        """True where the particles of a set have noise of their own."""

    def weights(
        self, label_ess: Float[Array, " sets"], num_particles: int
    ) -> Float[Array, " sets"]:
        """What each set counts."""
        return jnp.ones_like(label_ess)

    def num_evaluations(self, num_particles: int) -> int:
        return self.sets * num_particles

    def draw(self, key, guide, target, proposal, num_particles, data=None):
        check_noise(guide)
        mask_key, shared_key, own_key = jax.random.split(key, 3)
        shared = jax.vmap(guide.sample_noise)(jax.random.split(shared_key, self.sets))
        keys = jax.random.split(own_key, (self.sets, num_particles))
        own = jax.vmap(jax.vmap(guide.sample_noise))(keys)
        mask = self.masks(mask_key, guide, shared.shape[-1])
        noise = jnp.where(mask[:, None], own, shared[:, None])
        return draw_sets(key, noise, guide, target, data)

    def value(self, value, particles, starting):
        losses, infos = jax.vmap(lambda one: value(one, starting))(particles)
        num_particles = particles.log_p.shape[-1]
        weights = self.weights(infos.label_ess, num_particles) * infos.usable
        # A set without a finite label is left out.
        shares = jax.lax.stop_gradient(weights / jnp.maximum(jnp.sum(weights), 1e-6))
        loss = jnp.sum(jnp.where(shares > 0, shares * losses, 0.0))
        return loss, StepInfo(
            excess=jnp.mean(infos.excess),
            label_ess=jnp.mean(infos.label_ess),
            elbo=jnp.mean(infos.elbo),
            num_bad=jnp.sum(infos.num_bad),
            num_infinite=jnp.sum(infos.num_infinite),
            usable=jnp.any(weights > 0),
        )


class RandomBlocks(AbstractMaskedBlocks):
    """Blocks of neighbouring numbers of the noise, at random places in each step.

    Args:
        size: Length of a block; whole particles if the noise is shorter.
        sets: Sets of K particles per step.

    Example:
        >>> import softcvi
        >>> softcvi.objectives.RandomBlocks(16, sets=8).num_evaluations(8)
        64
    """

    size: int = eqx.field(static=True)
    sets: int = eqx.field(static=True, default=8)

    def __check_init__(self):
        check_count("size", self.size)
        check_count("sets", self.sets)

    def masks(self, key, guide, num_noise):
        return contiguous(key, num_noise, np.full(self.sets, self.size))


class AdaptiveBlocks(AbstractMaskedBlocks):
    """Blocks of several sizes, of which those count whose labels are not degenerate.

    The sets of a step come in pairs, one pair for each size from 64 numbers (or the
    whole particle, if it has fewer) down to two. A set counts if its *partner*, drawn
    independently, has a label ESS above a share of K, so that no set is chosen for its
    own draws; where none does, the smallest blocks count. No number is carried from
    step to step.

    Args:
        sets: Sets of K particles per step, an even number.
        share: Share of K that the label ESS must reach.

    Example:
        >>> import softcvi
        >>> softcvi.objectives.AdaptiveBlocks().sizes(1600).tolist()
        [64, 20, 6, 2]
    """

    sets: int = eqx.field(static=True, default=8)
    share: float = 0.5

    def __check_init__(self):
        check_count("sets", self.sets)
        if self.sets % 2 or self.sets < 4:
            raise ValueError(f"sets: must be even and at least 4; got {self.sets}.")

    def sizes(self, num_noise: int) -> np.ndarray:
        """The sizes of the blocks, the largest first."""
        # Where blocks are needed, larger ones have degenerate labels and smaller ones
        # carry little information: both would waste evaluations.
        largest = min(num_noise, _LARGEST)
        grid = np.geomspace(largest, min(largest, _SMALLEST), self.sets // 2)
        return np.rint(grid).astype(int)

    def masks(self, key, guide, num_noise):
        return contiguous(key, num_noise, np.repeat(self.sizes(num_noise), 2))

    def weights(self, label_ess, num_particles):
        partner = label_ess.reshape(-1, 2)[:, ::-1].reshape(-1)
        enough = partner >= self.share * num_particles
        smallest = jnp.arange(self.sets) >= self.sets - 2
        return jnp.where(jnp.any(enough), enough, smallest).astype(label_ess.dtype)


def contiguous(
    key: PRNGKeyArray, num_noise: int, sizes: np.ndarray
) -> Bool[Array, "sets noise"]:
    """Blocks on a ring of noise, spread over it: sets of one step seldom overlap."""
    sets = len(sizes)
    first = jax.random.randint(key, (), 0, num_noise)
    starts = (first + np.arange(sets) * num_noise // sets) % num_noise
    place = (jnp.arange(num_noise) - starts[:, None]) % num_noise
    return place < jnp.asarray(sizes)[:, None]


def check_noise(guide: AbstractGuide) -> None:
    """Blocks need a guide whose draws are a function of noise."""
    if not guide.has_noise:
        raise ValueError(
            f"blocks: a {type(guide).__name__} does not make its draws from a vector "
            "of noise (has_noise is False), so that its particles cannot share a part "
            "of it. Use blocks=NoBlocks(), or a guide of softcvi.guides."
        )


def check_count(name: str, value: int) -> None:
    """At least one, and an integer."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}: must be an integer of at least 1; got {value!r}.")


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
