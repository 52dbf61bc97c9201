"""The list of all zoo models."""

from collections.abc import Iterable

from softcvi_experiments.zoo import (
    _dynamics,
    _geometry,
    _hierarchical,
    _mixtures,
    _processes,
    _regression,
    _sparse,
    _survival,
    _time_series,
)
from softcvi_experiments.zoo._model import ZooModel

_ALL = {
    model.name: model
    for family in (
        _regression,
        _hierarchical,
        _sparse,
        _geometry,
        _mixtures,
        _time_series,
        _processes,
        _dynamics,
        _survival,
    )
    for model in family.MODELS
}


def names(split: str | None = None) -> tuple[str, ...]:
    """Names of the zoo's models, of one split if given.

    Args:
        split: "development", "report", or None for both.

    Example:
        >>> len(names()), len(names("development"))
        (28, 14)
    """
    if split not in (None, "development", "report"):
        raise ValueError(
            f'split must be "development", "report" or None for both, got {split!r}.'
        )
    return tuple(n for n, m in _ALL.items() if split is None or m.split == split)


def get(name: str) -> ZooModel:
    """The zoo model of that name.

    Example:
        >>> get("banana").kind
        'geometry'
    """
    if name not in _ALL:
        raise ValueError(f"no zoo model {name!r}; choose from: {', '.join(_ALL)}.")
    return _ALL[name]


def select(models: Iterable[str] | None = None, split: str | None = None):
    """Zoo models by name (all if None), restricted to a split if given.

    Example:
        >>> [m.name for m in select(["banana", "funnel"], split="report")]
        ['banana']
    """
    chosen = names() if models is None else tuple(models)
    allowed = set(names(split))
    return [get(name) for name in chosen if get(name).name in allowed]
