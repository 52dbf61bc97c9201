"""The experiments of the paper's appendix, and what it leaves open."""

from softcvi.experiments.appendix._additive_metrics import (
    AdditiveMetrics,
    additive_metrics,
)
from softcvi.experiments.appendix._additive_model import (
    additive_data,
    additive_guide,
    additive_target,
)
from softcvi.experiments.appendix._additive_report import (
    additive_figure,
    additive_table,
)
from softcvi.experiments.appendix._early_stopping import PlainAdam, fit_keeping_best
from softcvi.experiments.appendix._neural_additive import (
    AdditiveSettings,
    fit_additive,
    reproduce_neural_additive,
)
from softcvi.experiments.appendix._snr import (
    SNR_DIMENSIONS,
    SNR_METHODS,
    reproduce_snr,
    snr_curve,
    snr_values,
)
from softcvi.experiments.appendix._snr_figure import snr_figure
from softcvi.experiments.appendix._toy_normal import (
    LogScaleNormal,
    toy_normal_guide,
    toy_normal_target,
)

__all__ = [
    "SNR_DIMENSIONS",
    "SNR_METHODS",
    "AdditiveMetrics",
    "AdditiveSettings",
    "LogScaleNormal",
    "PlainAdam",
    "additive_data",
    "additive_figure",
    "additive_guide",
    "additive_metrics",
    "additive_table",
    "additive_target",
    "fit_additive",
    "fit_keeping_best",
    "reproduce_neural_additive",
    "reproduce_snr",
    "snr_curve",
    "snr_figure",
    "snr_values",
    "toy_normal_guide",
    "toy_normal_target",
]
