"""The ladder of guides that ``fit_until`` climbs."""

from softcvi.ladder._chains import ChainDraws
from softcvi.ladder._fit_until import LadderResult, fit_until
from softcvi.ladder._rungs import Rung

__all__ = ["ChainDraws", "LadderResult", "Rung", "fit_until"]
