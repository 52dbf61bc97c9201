"""Shapes of the seventh set, by name, written without a look at the search."""

from softcvi_experiments.verdict import _bends, _patchwork
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
    }
)
