"""Stan programs of the kinds found in posteriordb, fitted and compared with NUTS."""

from softcvi_experiments.stan._compare import Comparison, compare, nuts, record
from softcvi_experiments.stan._programs import data, names, path, target

__all__ = ["Comparison", "compare", "data", "names", "nuts", "path", "record", "target"]
