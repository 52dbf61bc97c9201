"""Guides that do not depend on a condition."""

from jaxtyping import PyTree

from softcvi.guides._base import AbstractGuide


def refuse_condition(guide: AbstractGuide, condition: PyTree) -> None:
    """Say so where a guide would otherwise ignore the datum it is conditioned on."""
    if condition is not None:
        raise ValueError(
            f"guide: a {type(guide).__name__} does not depend on a condition, and this "
            "target gives it one per datum. Use a conditional guide such as "
            "VectorGuide(NetworkDistribution(encoder, ...), like)."
        )
