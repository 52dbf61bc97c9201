"""Two posteriors with reference draws, to try the program on.

SLCP has four separate modes of equal mass; eight schools has a heavy tail.
"""

from softcvi.demo._eight_schools import (
    EightSchoolsSpace,
    eight_schools,
    eight_schools_guide,
    eight_schools_log_prob,
)
from softcvi.demo._slcp import slcp, slcp_guide, slcp_log_prob
from softcvi.demo._task import DemoTask

__all__ = [
    "DemoTask",
    "EightSchoolsSpace",
    "eight_schools",
    "eight_schools_guide",
    "eight_schools_log_prob",
    "slcp",
    "slcp_guide",
    "slcp_log_prob",
]
