"""Trainable arrays of guides: positive ones, and ones counted in fixed units."""

import jax
import jax.numpy as jnp
from jaxtyping import Array
from paramax import NonTrainable, Parameterize
from paramax.utils import inv_softplus


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
