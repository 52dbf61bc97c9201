"""Faults on purpose: kills, full disks, damaged files, second writers, signals, clocks.

``python -m softcvi_experiments.faults`` runs the parts and records what happened.
"""

from softcvi_experiments.faults._suite import PARTS, Faults, run_faults
from softcvi_experiments.faults._table import faults_page

__all__ = ["PARTS", "Faults", "faults_page", "run_faults"]
