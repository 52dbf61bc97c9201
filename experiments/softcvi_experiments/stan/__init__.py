"""Stan programs of the kinds found in posteriordb, fitted and compared with NUTS."""

from softcvi_experiments.stan._compare import METHODS, Comparison, compare, record
from softcvi_experiments.stan._page import page, write_page
from softcvi_experiments.stan._programs import data, names, path, target
from softcvi_experiments.stan._reference import Reference, nuts

__all__ = [
    "METHODS",
    "Comparison",
    "Reference",
    "compare",
    "data",
    "names",
    "nuts",
    "page",
    "path",
    "record",
    "target",
    "write_page",
]
