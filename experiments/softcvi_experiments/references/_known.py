"""Reference sources by name."""

from pathlib import Path

from softcvi_experiments.references._builtin import BuiltinReferences
from softcvi_experiments.references._public import PosteriordbSbibm
from softcvi_experiments.references._source import AbstractReferenceSource

SOURCES = {source.name: source for source in (BuiltinReferences, PosteriordbSbibm)}


def get_source(
    name: str, data_dir: str | Path | None = None
) -> AbstractReferenceSource:
    """Make a source of references.

    Args:
        name: ``"builtin"`` or ``"posteriordb-sbibm"``.
        data_dir: A folder (or for the latter a mirror's base URL) to read from.

    Example:
        >>> get_source("builtin").name
        'builtin'
        >>> get_source("kaggle")
        Traceback (most recent call last):
        ...
        ValueError: unknown reference source 'kaggle'; known: builtin, posteriordb-sbibm
    """
    if name not in SOURCES:
        known = ", ".join(SOURCES)
        raise ValueError(f"unknown reference source {name!r}; known: {known}")
    return SOURCES[name](data_dir)
