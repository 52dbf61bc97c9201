"""Targets: unnormalised posteriors, and the spaces in which they are fitted."""

from softcvi.targets._amortised import AmortisedTarget, MiniBatchTarget
from softcvi.targets._base import AbstractTarget
from softcvi.targets._control_variates import ControlVariateTarget
from softcvi.targets._density import DensityTarget
from softcvi.targets._funnel import FunnelSpace
from softcvi.targets._informed import Informed
from softcvi.targets._plate import PlateTarget
from softcvi.targets._rows import DataTarget
from softcvi.targets._source import AbstractRowSource, NpyRows
from softcvi.targets._space import (
    AbstractSpace,
    ModelSpace,
    SpaceOfModel,
    UnconstrainedSpace,
    interval,
    positive,
)
from softcvi.targets._structure import Structure

__all__ = [
    "AbstractRowSource",
    "AbstractSpace",
    "AbstractTarget",
    "AmortisedTarget",
    "ControlVariateTarget",
    "DataTarget",
    "DensityTarget",
    "FunnelSpace",
    "Informed",
    "MiniBatchTarget",
    "ModelSpace",
    "NpyRows",
    "PlateTarget",
    "SpaceOfModel",
    "Structure",
    "UnconstrainedSpace",
    "interval",
    "positive",
]
