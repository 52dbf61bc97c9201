"""Guides of one kind kept as one: arrays are stacked, methods vectorised."""

from abc import abstractmethod
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from softcvi._compile import host_stack
from softcvi.guides._base import AbstractGuide
from softcvi.guides._parameters import is_elementwise


class AbstractGroup(eqx.Module):
    """Some components of a mixture, of which one is asked for by its number.

    Attributes:
        guide: Says what a component can do.
        count: How many components there are.
    """

    guide: eqx.AbstractVar[AbstractGuide]
    count: eqx.AbstractVar[int]

    @abstractmethod
    def component(self, index: Int[Array, ""] | int) -> AbstractGuide:
        """One component by its number."""

    @abstractmethod
    def log_probs(
        self, particle: PyTree, condition: PyTree = None
    ) -> Float[Array, " count"]:
        """Log density of one particle under each component."""


class Stack(AbstractGroup):
    """Components with the same settings and shapes: arrays have a leading axis.

    A program does not grow with the number of components, and a draw costs that of
    one component.
    """

    guide: AbstractGuide
    count: int = eqx.field(static=True)

    def component(self, index: Int[Array, ""] | int) -> AbstractGuide:
        arrays, static = eqx.partition(self.guide, eqx.is_array)
        return eqx.combine(jax.tree_util.tree_map(lambda a: a[index], arrays), static)

    def log_probs(
        self, particle: PyTree, condition: PyTree = None
    ) -> Float[Array, " count"]:
        return eqx.filter_vmap(
            lambda guide: guide._log_prob(particle, condition),
            in_axes=eqx.if_array(0),
        )(self.guide)


class Single(AbstractGroup):
    """One component that cannot be stacked."""

    guide: AbstractGuide
    count: int = eqx.field(static=True, default=1)

    def component(self, index: Int[Array, ""] | int) -> AbstractGuide:
        return self.guide

    def log_probs(
        self, particle: PyTree, condition: PyTree = None
    ) -> Float[Array, " count"]:
        return self.guide._log_prob(particle, condition)[None]


class AbstractGrouped(AbstractGuide):
    """A guide made of others, which are kept in groups of one kind."""

    groups: eqx.AbstractVar[tuple[AbstractGroup, ...]]

    @property
    def has_noise(self) -> bool:
        return all(group.guide.has_noise for group in self.groups)

    @property
    def suggested_rate(self) -> float:
        return min(group.guide.suggested_rate for group in self.groups)

    @property
    def suggested_clip(self) -> float:
        return min(group.guide.suggested_clip for group in self.groups)


def grouped(
    components: Sequence[AbstractGuide],
) -> tuple[tuple[AbstractGroup, ...], tuple[int, ...]]:
    """Groups of components of one kind, and where each component went.

    The second value has the place of each component in the row of all groups.
    """
    kinds: list[list[int]] = []
    for i, component in enumerate(components):
        for kind in kinds:
            if _same_kind(components[kind[0]], component):
                kind.append(i)
                break
        else:
            kinds.append([i])
    groups = tuple(_group([components[i] for i in kind]) for kind in kinds)
    row = [i for kind in kinds for i in kind]
    return groups, tuple(int(place) for place in np.argsort(row))


def _group(components: list[AbstractGuide]) -> AbstractGroup:
    if len(components) == 1:
        return Single(components[0])
    parts = [eqx.partition(component, eqx.is_array) for component in components]
    arrays = jax.tree_util.tree_map(
        lambda *leaves: host_stack(leaves), *[arrays for arrays, _ in parts]
    )
    return Stack(eqx.combine(arrays, parts[0][1]), len(components))


def _same_kind(one: AbstractGuide, other: AbstractGuide) -> bool:
    """Whether two guides differ in the values of their arrays alone."""
    one_arrays, one_rest = eqx.partition(one, eqx.is_array)
    other_arrays, other_rest = eqx.partition(other, eqx.is_array)
    if not is_elementwise(one) or not bool(eqx.tree_equal(one_rest, other_rest)):
        return False
    shapes = [
        [(leaf.shape, leaf.dtype) for leaf in jax.tree_util.tree_leaves(arrays)]
        for arrays in (one_arrays, other_arrays)
    ]
    return shapes[0] == shapes[1]


def sample_from(
    groups: tuple[AbstractGroup, ...], place: Int[Array, ""], draw
) -> PyTree:
    """What ``draw`` makes of the component at a place in the row of all groups."""
    start, drawn = 0, None
    for number, group in enumerate(groups):
        index = jnp.clip(place - start, 0, group.count - 1)
        own = draw(number, group.component(index))
        if drawn is None:
            drawn = own
        else:
            here = place >= start
            drawn = jax.tree_util.tree_map(
                lambda new, old, here=here: jnp.where(here, new, old), own, drawn
            )
        start += group.count
    return drawn


def split_keys(key: PRNGKeyArray, groups: tuple[AbstractGroup, ...]):
    """A key for the choice, and one for each group."""
    pick, *rest = jax.random.split(key, len(groups) + 1)
    return pick, rest
