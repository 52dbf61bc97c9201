"""A zoo of models nobody tuned the defaults for, with trustworthy references."""

from softcvi_experiments.zoo._bench import run_zoo
from softcvi_experiments.zoo._build import build_reference, build_references
from softcvi_experiments.zoo._case import run_case
from softcvi_experiments.zoo._model import Modes, ZooModel
from softcvi_experiments.zoo._reference import Reference, load_reference
from softcvi_experiments.zoo._registry import get, names, select
from softcvi_experiments.zoo._score import Score, score
from softcvi_experiments.zoo._strategies import (
    AbstractStrategy,
    DirectDraws,
    LongNUTS,
    SymmetrisedNUTS,
    WhitenedNUTS,
)
from softcvi_experiments.zoo._table import zoo_page

__all__ = [
    "AbstractStrategy",
    "DirectDraws",
    "LongNUTS",
    "Modes",
    "Reference",
    "Score",
    "SymmetrisedNUTS",
    "WhitenedNUTS",
    "ZooModel",
    "build_reference",
    "build_references",
    "get",
    "load_reference",
    "names",
    "run_case",
    "run_zoo",
    "score",
    "select",
    "zoo_page",
]
