"""Targets around another one: the same particles, another log density."""

import equinox as eqx

from softcvi.targets._base import AbstractTarget
from softcvi.targets._space import AbstractSpace
from softcvi.targets._structure import Structure


class AbstractWrapper(AbstractTarget):
    """A target whose particles are those of another one."""

    target: eqx.AbstractVar[AbstractTarget]

    @property
    def structure(self) -> Structure:
        return self.target.structure

    @property
    def space(self) -> AbstractSpace:
        return self.target.space

    @property
    def has_gradient(self) -> bool:
        return self.target.has_gradient
