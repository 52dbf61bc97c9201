"""Fitting: the compiled loop, the start, and what surrounds them."""

from softcvi.fitting._cache import enable_compilation_cache
from softcvi.fitting._checkpoint import Checkpoint
from softcvi.fitting._fit import fit
from softcvi.fitting._history import History
from softcvi.fitting._many import fit_many
from softcvi.fitting._optimizer import (
    AbstractOptimizer,
    AbstractSchedule,
    Adam,
    ConstantRate,
    OptaxOptimizer,
    WarmupCosine,
    paper_optimizer,
)
from softcvi.fitting._progress import (
    AbstractReporter,
    Bar,
    Lines,
    Silent,
    as_reporter,
)
from softcvi.fitting._result import FitError, FitResult, as_table
from softcvi.fitting._stopping import (
    AbstractStoppingRule,
    EvaluationLimit,
    Never,
    Plateau,
    Progress,
    TimeLimit,
)

__all__ = [
    "AbstractOptimizer",
    "AbstractReporter",
    "AbstractSchedule",
    "AbstractStoppingRule",
    "Adam",
    "Bar",
    "Checkpoint",
    "ConstantRate",
    "EvaluationLimit",
    "FitError",
    "FitResult",
    "History",
    "Lines",
    "Never",
    "OptaxOptimizer",
    "Plateau",
    "Progress",
    "Silent",
    "TimeLimit",
    "WarmupCosine",
    "as_reporter",
    "as_table",
    "enable_compilation_cache",
    "fit",
    "fit_many",
    "paper_optimizer",
]
