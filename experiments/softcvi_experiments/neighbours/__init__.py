"""NumPyro's own example models, fitted with the defaults and beside NUTS."""

from softcvi_experiments.neighbours._autoencoder import train
from softcvi_experiments.neighbours._compare import compare, distance
from softcvi_experiments.neighbours._models import Case, cases
from softcvi_experiments.neighbours._table import Study, row, table

__all__ = [
    "Case",
    "Study",
    "cases",
    "compare",
    "distance",
    "row",
    "table",
    "train",
]
