"""Parameters in single precision, made to fulfil their constraints in double.

Stan goes back from a simplex to unconstrained numbers only if it sums to one within
1e-8, which a simplex that was rounded to single precision does not.
"""

import re
from collections.abc import Callable, Mapping

import numpy as np

_DECLARATION = re.compile(
    r"^\s*(?:array\s*\[[^\]]*\]\s*)?(?P<type>[a-z_]+)(?:\s*<[^;]*?>)?"
    r"(?:\s*\[[^;]*?\])?\s+(?P<name>\w+)\s*;",
    re.MULTILINE,
)


def parameter_types(program: str) -> dict[str, str]:
    r"""Types of the parameters by name, from a program in canonical form.

    Args:
        program: What stanc prints, one declaration per line.

    Example:
        >>> parameter_types("parameters {\n  simplex[3] p;\n  real mu;\n}\n")
        {'p': 'simplex', 'mu': 'real'}
    """
    block = re.search(r"^parameters \{(.*?)^\}", program, re.MULTILINE | re.DOTALL)
    if block is None:
        return {}
    return {m["name"]: m["type"] for m in _DECLARATION.finditer(block[1])}


def _summing_to_one(x: np.ndarray) -> np.ndarray:
    x = np.maximum(x, 0.0)
    return x / x.sum(-1, keepdims=True)


def _of_length_one(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _symmetric(x: np.ndarray) -> np.ndarray:
    return 0.5 * (x + np.swapaxes(x, -1, -2))


def _correlations(x: np.ndarray) -> np.ndarray:
    x = _symmetric(x)
    scale = np.sqrt(np.diagonal(x, axis1=-2, axis2=-1))
    out = x / (scale[..., :, None] * scale[..., None, :])
    index = np.arange(x.shape[-1])
    out[..., index, index] = 1.0
    return out


def _summing_to_zero(x: np.ndarray) -> np.ndarray:
    return x - x.mean(-1, keepdims=True)


def _columns_summing_to_one(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(_summing_to_one(np.swapaxes(x, -1, -2)), -1, -2)


_EXACT: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "simplex": _summing_to_one,
    "unit_vector": _of_length_one,
    "cholesky_factor_corr": _of_length_one,
    "corr_matrix": _correlations,
    "cov_matrix": _symmetric,
    "sum_to_zero_vector": _summing_to_zero,
    "row_stochastic_matrix": _summing_to_one,
    "column_stochastic_matrix": _columns_summing_to_one,
}


def exact(value: np.ndarray, type_name: str) -> np.ndarray:
    """The nearest value, or one very near, that fulfils the constraint of a type.

    Args:
        value: Parameters in double precision, perhaps with axes in front.
        type_name: Type in the program; most have no constraint that rounding breaks.

    Example:
        >>> exact(np.array([3.0, 1.0]), "simplex").tolist()
        [0.75, 0.25]
    """
    change = _EXACT.get(type_name)
    return value if change is None else change(value)
