"""Diagnostics: is the answer any good?"""

from softcvi.diagnostics._broad import BroadCheck, BroadMoments
from softcvi.diagnostics._evidence import (
    ChainCheck,
    Evidence,
    SamplerEvidence,
    SearchEvidence,
    WeightEvidence,
    settled_drift,
)
from softcvi.diagnostics._examine import examine, fresh_importance, khat_error
from softcvi.diagnostics._find import Finding, Kind, Severity
from softcvi.diagnostics._gradient_snr import GradientStatistics, gradient_snr
from softcvi.diagnostics._improper import ImproperDirection, improper_directions
from softcvi.diagnostics._metrics import (
    coverage,
    khat,
    mean_accuracy,
    reference_log_prob,
)
from softcvi.diagnostics._precision import density_rounding
from softcvi.diagnostics._redraw import RedrawCheck
from softcvi.diagnostics._short_chains import short_chains
from softcvi.diagnostics._summary import summarise
from softcvi.diagnostics._thresholds import THRESHOLDS, Thresholds
from softcvi.diagnostics._verdict import Verdict, judge
from softcvi.posterior import psis

__all__ = [
    "THRESHOLDS",
    "BroadCheck",
    "BroadMoments",
    "ChainCheck",
    "Evidence",
    "Finding",
    "GradientStatistics",
    "ImproperDirection",
    "Kind",
    "RedrawCheck",
    "SamplerEvidence",
    "SearchEvidence",
    "Severity",
    "Thresholds",
    "Verdict",
    "WeightEvidence",
    "coverage",
    "density_rounding",
    "examine",
    "fresh_importance",
    "gradient_snr",
    "improper_directions",
    "judge",
    "khat",
    "khat_error",
    "mean_accuracy",
    "psis",
    "reference_log_prob",
    "settled_drift",
    "short_chains",
    "summarise",
]
