"""The sixth set of families, by name, written without a look at the search."""

from softcvi_experiments.verdict import (
    _choices,
    _descent,
    _figures,
    _genes,
    _margins,
    _odds,
    _outcomes,
    _rays,
    _reactions,
    _rhythms,
    _solids,
    _storeys,
    _strata,
    _waiting,
    _walks,
    _whereabouts,
)
from softcvi_experiments.verdict._unseen import by_name

FAMILIES = by_name(
    {
        _outcomes: (
            "current_status cauchit mislabelled kumaraswamy conway_maxwell "
            "generalised_poisson nights ten_or_more goal_differences goals "
            "nominal_classes stages pollen response_times box_cox rain unmixing"
        ),
        _odds: (
            "excess_risk uneven_link odds_of_tables matched_cases skewed_errors "
            "alike_predictors"
        ),
        _choices: (
            "weak_instrument patience two_levers forgetting voters factory frontier "
            "weakest_link league steep_or_falling only_totals only_extremes "
            "friends_of_friends silent"
        ),
        _genes: ("blood_groups linkage distance_of_species quartet inbred lineages"),
        _descent: (
            "dose_of_germs waned vaccine nests diet band_returns dispersal clumps "
            "two_watchers farms two_clones"
        ),
        _figures: (
            "two_mouths boomerang hyperbola flower polar_cap dumbbell terraces "
            "himmelblau egg_box saturn chain_links helix octahedron hollow saw"
        ),
        _margins: (
            "logistic_margins turned_sinh funnel_and_ball correlations family_tree"
        ),
        _rays: (
            "oscillation interference polariser bloch furnace dark_energy companion "
            "absorbed faint_lines"
        ),
        _reactions: (
            "infusion two_compartments inhibitor too_much layers_of_gas "
            "second_order oxygen titration sunburnt_algae many_patients antagonists "
            "many_targets"
        ),
        _solids: "stretched_decay soaked cooling vapour cold_solid",
        _rhythms: (
            "tides two_pitches ringing bent_line two_steps slow_switch "
            "unknown_delay own_errors survivors feedback three_moods"
        ),
        _walks: "moving_target gaps no_explosion crashes",
        _storeys: (
            "towns crossover bulls age_and_year fields_of_trials known_groups "
            "strict_judges wild_studies"
        ),
        _strata: "many_scales polls clerks",
        _waiting: (
            "tills busy_spells bugs repairs bathtub sudden_risk check_ups "
            "masked_causes wearing blinded_counter odds_alive step_stress "
            "two_servers"
        ),
        _whereabouts: (
            "quake loudness bearings delays lamps buried creep field spillover "
            "stamp eclipse short_arc"
        ),
    }
)
