"""What builders of guides are given: a target, or a pytree like a particle."""

import jax.numpy as jnp
from jaxtyping import PyTree

from softcvi.targets import AbstractTarget, Structure


def as_guide_structure(target: AbstractTarget | Structure | PyTree) -> Structure:
    """The structure of a target's particle, or of a pytree like one."""
    if isinstance(target, Structure):
        return target
    return target.structure if isinstance(target, AbstractTarget) else Structure(target)


def float_dtype(structure: Structure):
    """The widest dtype of a particle, in which a guide keeps its parameters."""
    return jnp.result_type(*structure.dtypes)
