"""Evaluations that simulators in plain NumPy need: ask and tell, `fit`, SMC, VBMC."""

from softcvi_experiments.simulators._compare import Comparison, Study, compare, page
from softcvi_experiments.simulators._methods import METHODS, Answer
from softcvi_experiments.simulators._models import SIMULATORS, Simulator
from softcvi_experiments.simulators._reference import moments

__all__ = [
    "METHODS",
    "SIMULATORS",
    "Answer",
    "Comparison",
    "Simulator",
    "Study",
    "compare",
    "moments",
    "page",
]
