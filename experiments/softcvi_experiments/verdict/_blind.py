"""The sixth set of families, by name, written without a look at the search."""

from softcvi_experiments.verdict import (
    _choices,
    _descent,
    _figures,
    _outcomes,
    _rays,
    _reactions,
    _rhythms,
    _storeys,
    _waiting,
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
        _choices: (
            "weak_instrument patience two_levers forgetting voters factory frontier "
            "weakest_link league steep_or_falling only_totals only_extremes "
            "friends_of_friends silent"
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
        _rays: (
            "oscillation interference polariser bloch furnace dark_energy companion "
            "absorbed faint_lines"
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
        _storeys: (
            "towns crossover bulls age_and_year fields_of_trials known_groups "
            "strict_judges wild_studies many_scales polls clerks"
        ),
        _waiting: (
            "tills busy_spells bugs repairs bathtub sudden_risk check_ups "
            "masked_causes wearing blinded_counter odds_alive step_stress two_servers"
        ),
        _whereabouts: (
            "quake loudness bearings delays lamps buried creep field spillover stamp "
            "eclipse short_arc"
        ),
    }
)
