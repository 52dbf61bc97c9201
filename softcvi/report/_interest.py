"""Which parameters a page shows first, since it cannot show all."""

from collections.abc import Sequence

from softcvi.report._view import FitView


def by_interest(views: Sequence[FitView]) -> list[str]:
    """Scalars that a verdict names, then scalar parameters, then elements of arrays."""
    named = {name for view in views for name in view.named}

    def rank(name: str) -> int:
        if name in named:
            return 0
        return 2 if name.endswith("]") else 1

    return sorted(views[0].columns, key=rank)
