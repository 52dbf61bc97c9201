"""Cost of a step by particles, dimension, rows and groups, and what follows from it."""

from softcvi_experiments.scaling._costs import (
    Case,
    Costs,
    fit_costs,
)
from softcvi_experiments.scaling._predict import (
    Accelerator,
    Core,
    Network,
    Prediction,
    predict,
)
from softcvi_experiments.scaling._study import Study
from softcvi_experiments.scaling._tables import tables

__all__ = [
    "Accelerator",
    "Case",
    "Core",
    "Costs",
    "Network",
    "Prediction",
    "Study",
    "fit_costs",
    "predict",
    "tables",
]
