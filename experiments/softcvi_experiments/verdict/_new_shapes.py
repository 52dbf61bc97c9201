"""Shapes of the seventh set, by name, written without a look at the search."""

from softcvi_experiments.verdict import (
    _bends,
    _confines,
    _long_tails,
    _medleys,
    _patchwork,
    _rounds,
    _two_answers,
    _uneven,
)
from softcvi_experiments.verdict._unseen import by_name

FAMILIES = by_name(
    {
        _patchwork: (
            "odd_company triples_turned soft_boxes skewed_pieces core_and_halo ladder "
            "splinters both_signs nobody_knows_who signs_lost best_of_three"
        ),
        _bends: (
            "saddle twisted_column random_flow softplus_funnel scale_in_pieces "
            "leaning_funnel scales_of_groups bow_tie zigzag staircase"
        ),
        _confines: (
            "hollow_box notched_box bitten log_ratios polygon barriers dome cone "
            "arcsine orthant tents"
        ),
        _long_tails: (
            "turned_cauchy half_t_scales levy_times raw_lomax "
            "lasso_scales unknown_tail heavy_walk heavy_margins"
        ),
        _rounds: (
            "eggshell bubbles galaxy_arms trefoil compass_south torsions "
            "mobius axes_not_directions pond"
        ),
        _two_answers: (
            "two_link_arm cannon lens_on_bench conics power_sums blind_deconvolution "
            "two_neurons hidden_bump vernier rods"
        ),
        _medleys: (
            "four_blocks many_kinds teardrop checkerboard skewed_by_cubic parted "
            "collinear_medley"
        ),
        _uneven: "interpolated histogram_prior corduroy sup_norm hinge",
    }
)
