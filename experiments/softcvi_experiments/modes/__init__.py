"""Many modes, far and narrow: are all found, weighed, or else not trusted."""

from softcvi_experiments.modes._cases import CASES, Case, get_case
from softcvi_experiments.modes._study import Study, study_page

__all__ = ["CASES", "Case", "Study", "get_case", "study_page"]
