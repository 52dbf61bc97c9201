"""A hierarchy: global parameters, and groups that are independent given these."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree, Scalar

from softcvi.targets._base import AbstractTarget, as_log_density
from softcvi.targets._space import AbstractSpace, ModelSpace
from softcvi.targets._structure import Structure, as_structure


class PlateTarget(AbstractTarget):
    """A posterior that splits over groups once the global parameters are given.

    ``log p = log_global(globals) + sum_j log_local(globals, locals_j, data_j)``. That
    the terms are known one by one lets every group have labels of its own from the
    same evaluations (``softcvi.objectives.LocalLabels``).

    Args:
        log_global: Function of the dict of global sites, in model coordinates.
        log_local: Function ``(globals, locals, row)`` of the global sites, of the
            local sites of *one* group and of its row of ``data``; its prior included.
        like: One particle: a dict whose local sites have the groups as first axis.
        local: Names of the local sites.
        data: Pytree of arrays with the groups as first axis, or None.
        space: Where the global sites are fitted; local sites stay as they are.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> target = softcvi.targets.PlateTarget(
        ...     lambda g: -0.5 * g["mu"] ** 2,
        ...     lambda g, l, y: -0.5 * (l["theta"] - g["mu"]) ** 2
        ...     - 0.5 * (y - l["theta"]) ** 2,
        ...     like={"mu": jnp.zeros(()), "theta": jnp.zeros(3)},
        ...     local=("theta",), data=jnp.ones(3),
        ... )
        >>> float(target.log_density({"mu": 0.0, "theta": jnp.zeros(3)}))
        -1.5
    """

    log_global: Callable
    log_local: Callable
    data: PyTree
    space: AbstractSpace
    structure: Structure = eqx.field(static=True)
    plate: tuple[str, ...] = eqx.field(static=True)
    has_gradient: bool = eqx.field(static=True)

    def __init__(
        self,
        log_global: Callable,
        log_local: Callable,
        like: dict,
        *,
        local: tuple[str, ...],
        data: PyTree = None,
        space: AbstractSpace | None = None,
    ):
        self.log_global = log_global
        self.log_local = log_local
        self.data = data
        self.space = ModelSpace() if space is None else space
        self.structure = as_structure(like)
        self.plate = tuple(local)
        self.has_gradient = self.structure.is_continuous
        check_plate(self.structure, self.plate)

    @property
    def local_sites(self) -> tuple[str, ...]:
        return self.plate

    def log_density(self, particle: PyTree, data: Any = None) -> Scalar:
        shared, local = self.local_terms(particle, data)
        return shared + jnp.sum(local)

    def local_terms(
        self, particle: PyTree, data: Any = None
    ) -> tuple[Scalar, Float[Array, " groups"]]:
        x, log_det = self.space.to_model_and_log_det(particle)
        local = {name: x[name] for name in self.local_sites}
        shared = {name: x[name] for name in x if name not in local}

        def one(local, row):
            return as_log_density(self.log_local(shared, local, row), "log_local")

        terms = jax.vmap(one)(local, self.data)
        term = as_log_density(self.log_global(shared), "log_global")
        return term + log_det, terms


def check_plate(structure: Structure, local: tuple[str, ...]) -> int:
    """How many groups the local sites have; refuse sites that do not fit together."""
    shapes = dict(zip(structure.names, structure.shapes, strict=True))
    unknown = [name for name in local if name not in shapes]
    if unknown or not local:
        raise ValueError(
            f"local: {unknown or 'no site'} given; the particle has {list(shapes)}."
        )
    if len(local) == len(shapes):
        raise ValueError("local: at least one site must be global.")
    lengths = {name: shapes[name][0] if shapes[name] else 0 for name in local}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise ValueError(
            f"local: sites need one length along their first axis; it is {lengths}."
        )
    return next(iter(lengths.values()))
