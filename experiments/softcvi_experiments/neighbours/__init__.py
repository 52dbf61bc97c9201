"""NumPyro's own example models, fitted with the defaults and beside NUTS."""

from softcvi_experiments.neighbours._autoencoder import train
from softcvi_experiments.neighbours._compare import compare, distance
from softcvi_experiments.neighbours._models import Case, cases
from softcvi_experiments.neighbours._table import IDENTITY, row, run, table

__all__ = [
    "IDENTITY",
    "Case",
    "cases",
    "compare",
    "distance",
    "row",
    "run",
    "table",
    "train",
]
