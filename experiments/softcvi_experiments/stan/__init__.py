"""Stan programs of the kinds found in posteriordb, fitted and compared with NUTS."""

from softcvi_experiments.stan._compare import METHODS, Comparison, compare
from softcvi_experiments.stan._page import Study, page
from softcvi_experiments.stan._programs import data, names, path, target
from softcvi_experiments.stan._reference import Reference, nuts

__all__ = [
    "METHODS",
    "Comparison",
    "Reference",
    "Study",
    "compare",
    "data",
    "names",
    "nuts",
    "page",
    "path",
    "target",
]
