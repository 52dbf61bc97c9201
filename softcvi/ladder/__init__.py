"""``fit_until``: a list of guides and chains, tried until an answer is trusted."""

from softcvi.ladder._base import AbstractRung, Answer, Attempt, LadderState
from softcvi.ladder._chains import ChainDraws, ChainResult, Chains, ShortChains
from softcvi.ladder._fit_until import DEFAULT_RUNGS, fit_until
from softcvi.ladder._flow import Flow
from softcvi.ladder._normal import AsPlaced, Simple
from softcvi.ladder._parts import ByParts
from softcvi.ladder._result import LadderResult

__all__ = [
    "DEFAULT_RUNGS",
    "AbstractRung",
    "Answer",
    "AsPlaced",
    "Attempt",
    "ByParts",
    "ChainDraws",
    "ChainResult",
    "Chains",
    "Flow",
    "LadderResult",
    "LadderState",
    "ShortChains",
    "Simple",
    "fit_until",
]
