"""Reference posteriors: shipped, built anew, or fetched from their publishers."""

from softcvi_experiments.references._build import build
from softcvi_experiments.references._builtin import BuiltinReferences
from softcvi_experiments.references._errors import ReferenceFileError
from softcvi_experiments.references._exact import (
    best_factorised_log_prob,
    draw_linear_regression,
    linear_regression_posterior,
    simulate_linear_regression,
)
from softcvi_experiments.references._importance import resample_slcp, simulate_slcp
from softcvi_experiments.references._known import SOURCES, get_source
from softcvi_experiments.references._nuts import (
    eight_schools_model,
    garch_model,
    sample_eight_schools,
    sample_garch,
    simulate_garch,
)
from softcvi_experiments.references._public import PosteriordbSbibm
from softcvi_experiments.references._record import Reference
from softcvi_experiments.references._source import POSTERIORS, AbstractReferenceSource

__all__ = [
    "POSTERIORS",
    "SOURCES",
    "AbstractReferenceSource",
    "BuiltinReferences",
    "PosteriordbSbibm",
    "Reference",
    "ReferenceFileError",
    "best_factorised_log_prob",
    "build",
    "draw_linear_regression",
    "eight_schools_model",
    "garch_model",
    "get_source",
    "linear_regression_posterior",
    "resample_slcp",
    "sample_eight_schools",
    "sample_garch",
    "simulate_garch",
    "simulate_linear_regression",
    "simulate_slcp",
]
