"""The sixth set of families, by name, written without a look at the search."""

from softcvi_experiments.verdict import (
    _descent,
    _figures,
    _outcomes,
    _reactions,
    _rhythms,
    _whereabouts,
)
from softcvi_experiments.verdict._unseen import by_name

FAMILIES = by_name(
    {
        _outcomes: (
            "current_status cauchit mislabelled kumaraswamy conway_maxwell "
            "generalised_poisson nights ten_or_more goal_differences goals "
            "nominal_classes stages pollen response_times box_cox rain unmixing "
            "excess_risk uneven_link odds_of_tables matched_cases skewed_errors "
            "alike_predictors"
        ),
        _descent: (
            "blood_groups linkage distance_of_species quartet inbred lineages "
            "dose_of_germs waned vaccine nests diet band_returns dispersal clumps "
            "two_watchers farms two_clones"
        ),
        _figures: (
            "two_mouths boomerang hyperbola flower polar_cap dumbbell terraces "
            "logistic_margins turned_sinh funnel_and_ball himmelblau egg_box saturn "
            "chain_links helix octahedron correlations family_tree hollow saw"
        ),
        _reactions: (
            "infusion two_compartments inhibitor too_much layers_of_gas second_order "
            "oxygen titration stretched_decay soaked cooling vapour sunburnt_algae "
            "many_patients antagonists cold_solid many_targets"
        ),
        _rhythms: (
            "tides two_pitches ringing bent_line two_steps slow_switch unknown_delay "
            "own_errors survivors feedback three_moods moving_target gaps "
            "no_explosion crashes"
        ),
        _whereabouts: (
            "quake loudness bearings delays lamps buried creep field spillover stamp "
            "eclipse short_arc"
        ),
    }
)
