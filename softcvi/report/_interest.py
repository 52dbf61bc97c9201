"""Which parameters a page shows first, since it cannot show all."""

from collections.abc import Sequence

from softcvi.report._view import FitView


def by_interest(views: Sequence[FitView]) -> list[str]:
    """Scalars that a verdict names, then scalar parameters, then elements of arrays.

    Args:
        views: Fits of one posterior.

    Example:
        >>> import dataclasses
        >>> view = FitView.example()
        >>> columns = {name: view.columns["mu"] for name in ("a[0]", "a[1]", "mu")}
        >>> reasons = ("the mean of a[1] is 0.6 standard deviations off",)
        >>> by_interest([dataclasses.replace(view, columns=columns, reasons=reasons)])
        ['a[1]', 'mu', 'a[0]']
    """
    reasons = " ".join(reason for view in views for reason in view.reasons)

    def rank(name: str) -> int:
        # The words around it: a parameter may be called "a" or "draws".
        if f" of {name} is " in reasons:
            return 0
        return 2 if name.endswith("]") else 1

    return sorted(views[0].columns, key=rank)
