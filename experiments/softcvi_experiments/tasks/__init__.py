"""The paper's tasks: models, guides, data and references."""

from softcvi_experiments.tasks._eight_schools import (
    EightSchools,
    EightSchoolsSpace,
    eight_schools_log_prob,
)
from softcvi_experiments.tasks._garch import (
    Garch,
    GarchSpace,
    garch_log_prob,
    posteriordb_garch_log_prob,
)
from softcvi_experiments.tasks._known import PAPER_TASKS, TASKS, get_task
from softcvi_experiments.tasks._linear_regression import (
    LinearRegression,
    linear_regression_log_prob,
)
from softcvi_experiments.tasks._slcp import Slcp, refresh_slcp, slcp_log_prob
from softcvi_experiments.tasks._task import (
    AbstractTask,
    Refresh,
    RunData,
    gather_references,
    run_keys,
)

__all__ = [
    "PAPER_TASKS",
    "TASKS",
    "AbstractTask",
    "EightSchools",
    "EightSchoolsSpace",
    "Garch",
    "GarchSpace",
    "LinearRegression",
    "Refresh",
    "RunData",
    "Slcp",
    "eight_schools_log_prob",
    "garch_log_prob",
    "gather_references",
    "get_task",
    "linear_regression_log_prob",
    "posteriordb_garch_log_prob",
    "refresh_slcp",
    "run_keys",
    "slcp_log_prob",
]
