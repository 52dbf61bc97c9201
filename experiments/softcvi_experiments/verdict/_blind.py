"""The sixth set of families, by name, written without a look at the search."""

from softcvi_experiments.verdict import _outcomes
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
    }
)
