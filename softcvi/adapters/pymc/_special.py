"""Special functions that PyTensor's translation to JAX lacks."""

import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from softcvi.adapters._extras import require

# W. J. Cody, Rational Chebyshev approximations for the error function, 1969: good to
# double precision.
_MIDDLE = (0.46875, 4.0)
_MIDDLE_TOP = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
_MIDDLE_BOTTOM = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)
_TAIL_TOP = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
_TAIL_BOTTOM = (
    1.0,
    2.56852019228982242e0,
    1.87295284992346725e0,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)


def register_special_functions() -> None:
    """Let PyTensor translate ``erfcx``, which censored and truncated normals need.

    Without TensorFlow Probability PyTensor has none, and refuses these models.
    """
    if importlib.util.find_spec("tensorflow_probability") is not None:
        return
    funcify = require("pytensor.link.jax.dispatch", "pymc").jax_funcify
    scalar = require("pytensor.scalar.math", "pymc")
    funcify.register(scalar.Erfcx)(lambda op, **kwargs: erfcx)


def erfcx(x: ArrayLike) -> Array:
    """The scaled complementary error function, exp(x^2) erfc(x).

    Args:
        x: Any real numbers.

    Example:
        >>> f"{erfcx(50.0):.6f}"
        '0.011282'
    """
    x = jnp.asarray(x, float)
    low, high = _MIDDLE
    # What is not chosen has a gradient too, which must be finite.
    small = jnp.minimum(x, low)
    middle = jnp.clip(x, low, high)
    square = jnp.maximum(x, high) ** -2
    tail = square * _ratio(_TAIL_TOP, _TAIL_BOTTOM, square)
    return jnp.select(
        [x < low, x < high],
        [
            jnp.exp(small**2) * jax.scipy.special.erfc(small),
            _ratio(_MIDDLE_TOP, _MIDDLE_BOTTOM, middle),
        ],
        (1 / np.sqrt(np.pi) - tail) / jnp.maximum(x, high),
    )


def _ratio(top: tuple, bottom: tuple, x: Array) -> Array:
    return jnp.polyval(jnp.asarray(top), x) / jnp.polyval(jnp.asarray(bottom), x)
