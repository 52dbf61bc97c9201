"""Models of the seventh set, by name, written without a look at the search."""

from softcvi_experiments.verdict import (
    _beasts,
    _machines,
    _patients,
)
from softcvi_experiments.verdict._unseen import by_name

FAMILIES = by_name(
    {
        _machines: (
            "stress_cycles unknown_sample crack parallel_wires diode rating_curve "
            "pumped_well falling simulator_and_truth"
        ),
        _patients: (
            "alcohol late_effect missed_doses incubation late_reports misremembered "
            "memory_tree months_to_pregnancy readers_of_scans why_they_left"
        ),
        _beasts: (
            "hares allee butterflies stages_of_life unseen_species three_lists "
            "marked_and_seen homes fished_down rows_times_columns"
        ),
    }
)
