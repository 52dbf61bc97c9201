"""A zoo of models nobody tuned the defaults for, with trustworthy references."""

from softcvi.experiments.zoo._build import build_reference, build_references
from softcvi.experiments.zoo._model import Modes, ZooModel
from softcvi.experiments.zoo._reference import Reference, load_reference
from softcvi.experiments.zoo._registry import get, names, select
from softcvi.experiments.zoo._strategies import (
    AbstractStrategy,
    DirectDraws,
    LongNUTS,
    SymmetrisedNUTS,
)

__all__ = [
    "AbstractStrategy",
    "DirectDraws",
    "LongNUTS",
    "Modes",
    "Reference",
    "SymmetrisedNUTS",
    "ZooModel",
    "build_reference",
    "build_references",
    "get",
    "load_reference",
    "names",
    "select",
]
