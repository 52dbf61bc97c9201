"""Where reference posteriors come from: one interface, several sources."""

import abc
from pathlib import Path

from softcvi_experiments.references._record import Reference

POSTERIORS = (
    "eight_schools",
    "garch_paper",
    "garch_posteriordb",
    *(f"slcp_{number:02d}" for number in range(1, 11)),
)


class AbstractReferenceSource(abc.ABC):
    """A place to get reference posteriors from.

    Example:
        >>> from softcvi_experiments.references import BuiltinReferences
        >>> isinstance(BuiltinReferences(), AbstractReferenceSource)
        True
    """

    name: str

    @abc.abstractmethod
    def load(self, posterior: str) -> Reference:
        """Return one reference posterior.

        Args:
            posterior: One of ``POSTERIORS``.

        Example:
            >>> from softcvi_experiments.references import BuiltinReferences
            >>> BuiltinReferences().load("slcp_01").draws["theta"].shape
            (10000, 5)
        """

    @abc.abstractmethod
    def fetch(self) -> list[Path]:
        """Make sure that every file is at hand and intact; return their paths.

        Example:
            >>> from softcvi_experiments.references import BuiltinReferences
            >>> len(BuiltinReferences().fetch())
            13
        """


def check_posterior(posterior: str) -> str:
    """Return ``posterior`` if it is known, else raise with the known names.

    Args:
        posterior: A posterior's name.

    Example:
        >>> check_posterior("slcp_01")
        'slcp_01'
    """
    if posterior not in POSTERIORS:
        known = ", ".join(POSTERIORS)
        raise ValueError(f"unknown reference posterior {posterior!r}; known: {known}")
    return posterior
