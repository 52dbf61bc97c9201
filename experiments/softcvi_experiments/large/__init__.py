"""Hundreds and thousands of parameters: what ``fit`` reaches, beside NUTS and ELBO."""

from softcvi_experiments.large._cases import CASES, get_case
from softcvi_experiments.large._posterior import Bounds, LargePosterior
from softcvi_experiments.large._study import Study
from softcvi_experiments.large._table import study_page
from softcvi_experiments.study import run_study

__all__ = [
    "CASES",
    "Bounds",
    "LargePosterior",
    "Study",
    "get_case",
    "run_study",
    "study_page",
]
