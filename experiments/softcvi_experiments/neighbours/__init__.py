"""NumPyro's own example models, fitted with the defaults and beside NUTS."""

from softcvi_experiments.neighbours._autoencoder import train
from softcvi_experiments.neighbours._compare import compare, distance
from softcvi_experiments.neighbours._models import Case, cases
from softcvi_experiments.neighbours._table import row, write_table

__all__ = ["Case", "cases", "compare", "distance", "row", "train", "write_table"]
