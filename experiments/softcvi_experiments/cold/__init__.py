"""From a cold process to an answer: where the seconds go, beside NUTS."""

from softcvi_experiments.cold._race import METHODS, Race, run_race
from softcvi_experiments.cold._table import cold_page, cold_table

__all__ = ["METHODS", "Race", "cold_page", "cold_table", "run_race"]
