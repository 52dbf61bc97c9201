"""The fifth set of families, by name, written without knowledge of the search."""

from collections.abc import Callable, Mapping
from types import ModuleType

from softcvi_experiments.verdict import (
    _answers,
    _assays,
    _clocks,
    _conjugate,
    _edges,
    _hard,
    _levels,
    _lifetimes,
    _links,
    _models,
    _sky,
    _states,
    _wildlife,
)

_MODULES = {
    _links: (
        "inverse_gaussian quantile student_noise weak_prior_separated selection "
        "income_classes rounded adjacent_categories litters rate_ratios fishing"
    ),
    _conjugate: (
        "conjugate_line year_trend cubic_trend stick_breaking wishart many_outcomes "
        "uniform_limit guarantee"
    ),
    _lifetimes: (
        "proportional_hazards hazard_pieces competing_risks cured frailty "
        "accelerated_failure entered_late"
    ),
    _assays: (
        "emax flip_flop natural_deaths tight_binding two_sites decay_chain exchange"
    ),
    _states: "count_level volatility learning robust_level magnet jumps stock",
    _clocks: (
        "several_lags calm_and_storm threshold radial_velocity self_exciting reverting"
    ),
    _answers: "rankings chess two_coins letters two_camps detection lapses",
    _wildlife: (
        "removal distances recruits species_area turnover lengths eaten pooled_tests"
    ),
    _levels: "crossed growth_of_children disease_map laboratories unseen_groups",
    _models: ("schools model_regression clinics tumours two_kinds visits twins"),
    _sky: (
        "parallax on_off broken_power lensing flight_directions wrapped_cauchy clayton "
        "screening secondary_cases households"
    ),
    _edges: (
        "cut_by_a_plane shares_of_whole in_order background yearly_maxima exceedances "
        "smallest_mass cusp turned_laplace torus smooth_path two_sided_pareto"
    ),
    _hard: (
        "repelling turned_wells nearest_centre moons spiral needles spiked_effects "
        "concentric scale_of_scale rosenbrock cauchy_places crystal"
    ),
}


def by_name(modules: Mapping[ModuleType, str]) -> dict[str, Callable]:
    """Makers of families by the names of the families.

    Args:
        modules: Names of functions of each module, with spaces between.

    Example:
        >>> list(by_name({_sky: "on_off lensing"}))
        ['on-off', 'lensing']
    """
    return {
        name.replace("_", "-"): getattr(module, name)
        for module, names in modules.items()
        for name in names.split()
    }


FAMILIES = by_name(_MODULES)
