"""Starts: where the posterior is, before a guide is fitted to it."""

from softcvi.starts._base import AbstractStart, Moments, SearchEvidence, StartReport
from softcvi.starts._choose import Suggestion, suggest
from softcvi.starts._explore import Explore
from softcvi.starts._given import (
    FromDraws,
    FromPoint,
    FromPosterior,
    FromPrior,
    InBestSpace,
    NoStart,
    as_start,
)
from softcvi.starts._laplace import Laplace
from softcvi.starts._precise import PreciseTarget
from softcvi.starts._tempered import Tempered

__all__ = [
    "AbstractStart",
    "Explore",
    "FromDraws",
    "FromPoint",
    "FromPosterior",
    "FromPrior",
    "InBestSpace",
    "Laplace",
    "Moments",
    "NoStart",
    "PreciseTarget",
    "SearchEvidence",
    "StartReport",
    "Suggestion",
    "Tempered",
    "as_start",
    "suggest",
]
