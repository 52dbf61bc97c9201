"""Faults on purpose: kills, full disks, damaged files, second writers, signals, clocks.

``python -m softcvi_experiments.faults`` runs the parts and records what happened.
"""

from softcvi_experiments.faults._suite import IDENTITY, PARTS, Faults, run_faults
from softcvi_experiments.faults._table import (
    faults_page,
    faults_table,
    files_table,
    long_table,
    made,
)

__all__ = [
    "IDENTITY",
    "PARTS",
    "Faults",
    "faults_page",
    "faults_table",
    "files_table",
    "long_table",
    "made",
    "run_faults",
]
