"""How often the verdict is wrong: random posteriors whose answers are known."""

from softcvi_experiments.study import run_study
from softcvi_experiments.verdict._families import Family, families, get_family
from softcvi_experiments.verdict._posterior import RandomPosterior, Score
from softcvi_experiments.verdict._study import Study
from softcvi_experiments.verdict._table import clopper_pearson, study_page

__all__ = [
    "Family",
    "RandomPosterior",
    "Score",
    "Study",
    "clopper_pearson",
    "families",
    "get_family",
    "run_study",
    "study_page",
]
