"""Arrays of guides: trainable ones, those of a particle, and conditions."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree
from paramax import AbstractUnwrappable, NonTrainable, Parameterize
from paramax.utils import inv_softplus

from softcvi.guides._base import AbstractGuide
from softcvi.targets import AbstractTarget, Structure


def positive_parameter(value: Array) -> Parameterize:
    """A trainable positive array, through softplus as in the paper."""
    return Parameterize(jax.nn.softplus, inv_softplus(value))


def in_units(value: Array, unit: Array) -> Parameterize:
    """A trainable array counted from here in fixed units: one rate fits all scales."""
    return Parameterize(
        _moved, jnp.zeros_like(value), NonTrainable(value), NonTrainable(unit)
    )


def positive_in_units(value: Array, unit: Array) -> Parameterize:
    """A trainable positive array counted in fixed units."""
    return Parameterize(
        _scaled_softplus, inv_softplus(value / unit), NonTrainable(unit)
    )


def _moved(steps: Array, start: Array, unit: Array) -> Array:
    return start + unit * steps


def _scaled_softplus(x: Array, unit: Array) -> Array:
    return unit * jax.nn.softplus(x)


_ELEMENTWISE = (jax.nn.softplus, jnp.exp, _moved, _scaled_softplus)


def is_elementwise(tree: PyTree) -> bool:
    """Whether wrapped parameters may gain a leading axis and still be unwrapped."""
    wrapped = jax.tree_util.tree_leaves(
        tree, is_leaf=lambda node: isinstance(node, AbstractUnwrappable)
    )
    return all(
        (isinstance(node, NonTrainable) and _is_plain(node.tree))
        or (isinstance(node, Parameterize) and node.fn in _ELEMENTWISE)
        for node in wrapped
        if isinstance(node, AbstractUnwrappable)
    )


def _is_plain(tree: PyTree) -> bool:
    """Whether nothing in a tree is wrapped."""
    nodes = jax.tree_util.tree_leaves(
        tree, is_leaf=lambda node: isinstance(node, AbstractUnwrappable)
    )
    return not any(isinstance(node, AbstractUnwrappable) for node in nodes)


def as_guide_structure(target: AbstractTarget | Structure | PyTree) -> Structure:
    """The structure of a target's particle, or of a pytree like one."""
    if isinstance(target, Structure):
        return target
    return target.structure if isinstance(target, AbstractTarget) else Structure(target)


def float_dtype(structure: Structure):
    """The widest dtype of a particle, in which a guide keeps its parameters."""
    return jnp.result_type(*structure.dtypes)


def refuse_condition(guide: AbstractGuide, condition: PyTree) -> None:
    """Refuse a condition that a guide would otherwise ignore."""
    if condition is not None:
        raise ValueError(
            f"guide: a {type(guide).__name__} does not depend on a condition, and this "
            "target gives it one per datum. Use a conditional guide such as "
            "VectorGuide(NetworkDistribution(encoder, ...), like)."
        )
