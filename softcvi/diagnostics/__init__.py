"""Diagnostics: is the answer any good?"""

from softcvi.diagnostics._coverage import coverage
from softcvi.diagnostics._gradient_snr import GradientStatistics, gradient_snr
from softcvi.diagnostics._improper import ImproperDirection, improper_directions
from softcvi.diagnostics._khat import khat
from softcvi.diagnostics._mean_accuracy import mean_accuracy
from softcvi.diagnostics._reference_log_prob import reference_log_prob
from softcvi.diagnostics._short_chains import ChainCheck, short_chains
from softcvi.diagnostics._summary import summarise
from softcvi.diagnostics._verdict import Verdict, assess, settled_drift
from softcvi.posterior import psis

__all__ = [
    "ChainCheck",
    "GradientStatistics",
    "ImproperDirection",
    "Verdict",
    "assess",
    "coverage",
    "gradient_snr",
    "improper_directions",
    "khat",
    "mean_accuracy",
    "psis",
    "reference_log_prob",
    "settled_drift",
    "short_chains",
    "summarise",
]
