"""Models of the seventh set, by name, written without a look at the search."""

from softcvi_experiments.verdict import (
    _beasts,
    _designs,
    _heavens,
    _hidden,
    _linked,
    _machines,
    _markets,
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
        _markets: (
            "yield_curve common_trend customers between_bounds auctions moving_crowd "
            "clicks trade secret_item heaped"
        ),
        _heavens: (
            "eccentric spinning_galaxy far_galaxy faint_galaxies droplets beacon "
            "old_charcoal few_rays sharpened winds"
        ),
        _designs: (
            "born_when truncated_powers relative_risk unknown_power jeffreys "
            "blurred_doses bounded_loss unknown_lasso never_falling defects_by_year "
            "sediment tetrachoric"
        ),
        _hidden: (
            "three_kinds_of_counts eras topics lost_labels gene_on_a_map decisions "
            "unknown_urn"
        ),
        _linked: (
            "drifting_slope hidden_cycle slopes_and_levels network_of_trials "
            "whitened_curve spotted_star which_matter relatives sure_or_not"
        ),
    }
)
