"""Shapes of the seventh set, by name, written without a look at the search."""

from softcvi_experiments.verdict import _bends, _confines, _long_tails, _patchwork
from softcvi_experiments.verdict._unseen import by_name

FAMILIES = by_name(
    {
        _patchwork: (
            "odd_company triples_turned soft_boxes skewed_pieces core_and_halo ladder "
            "splinters both_signs nobody_knows_who signs_lost best_of_three"
        ),
        _bends: (
            "saddle twisted_column random_flow softplus_funnel scale_in_pieces "
            "leaning_funnel precision_first scales_of_groups stretched_ends bow_tie "
            "chirp zigzag staircase"
        ),
        _confines: (
            "hollow_box notched_box bitten log_ratios polygon barriers dome cone "
            "growing_amounts pie_slice arcsine orthant tents"
        ),
        _long_tails: (
            "few_degrees turned_cauchy half_t_scales levy_times raw_lomax "
            "log_logistic_amounts lasso_scales unknown_tail heavy_walk heavy_margins"
        ),
    }
)
