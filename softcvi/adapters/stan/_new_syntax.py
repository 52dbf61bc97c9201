"""What came into Stan after the compiler that httpstan ships, for error messages."""

import re

# Types and functions by the version that brought them.
_SINCE = {
    "jacobian": "2.36",
    "sum_to_zero_vector": "2.36",
    "sum_to_zero_matrix": "2.37",
    "row_stochastic_matrix": "2.36",
    "column_stochastic_matrix": "2.36",
    "beta_neg_binomial": "2.36",
    "laplace_marginal": "2.37",
    "laplace_marginal_tol": "2.37",
    "laplace_latent_rng": "2.37",
    "hypergeometric_1F0": "2.37",
}


def newer_features(text: str) -> dict[str, str]:
    """Names in a program that a later version of Stan brought, with that version.

    Args:
        text: The program.

    Example:
        >>> newer_features("parameters { sum_to_zero_vector[3] x; }")
        {'sum_to_zero_vector': '2.36'}
    """
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    words = set(re.findall(r"\w+", code))
    bases = {re.sub(r"_(?:lpdf|lpmf|lcdf|lccdf|cdf|rng)$", "", word) for word in words}
    used = words | bases
    return {name: since for name, since in _SINCE.items() if name in used}
