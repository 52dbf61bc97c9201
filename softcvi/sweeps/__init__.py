"""Sweeps: a grid of fits over models, guides, objectives and seeds, on many workers."""

from softcvi.sweeps._calibrate import calibrate
from softcvi.sweeps._calibration import Calibration, CalibrationRow
from softcvi.sweeps._dask import DaskExecutor
from softcvi.sweeps._executors import (
    AbstractExecutor,
    Outcome,
    ProcessExecutor,
    SerialExecutor,
)
from softcvi.sweeps._grid import GUIDES, OBJECTIVES, Configuration, Grid
from softcvi.sweeps._provenance import provenance
from softcvi.sweeps._store import RecordStore, append_records, read_records
from softcvi.sweeps._sweep import SweepResult, sweep

__all__ = [
    "GUIDES",
    "OBJECTIVES",
    "AbstractExecutor",
    "Calibration",
    "CalibrationRow",
    "Configuration",
    "DaskExecutor",
    "Grid",
    "Outcome",
    "ProcessExecutor",
    "RecordStore",
    "SerialExecutor",
    "SweepResult",
    "append_records",
    "calibrate",
    "provenance",
    "read_records",
    "sweep",
]
