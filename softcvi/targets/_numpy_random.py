"""NumPy's generators from JAX's keys, for work that is not worth compiling."""

import jax
import numpy as np
from jaxtyping import PRNGKeyArray


def numpy_generator(key: PRNGKeyArray) -> np.random.Generator:
    """A generator whose seed is a key.

    Args:
        key: Random key.

    Example:
        >>> import jax
        >>> numpy_generator(jax.random.key(0)).integers(5, size=3).shape
        (3,)
    """
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
