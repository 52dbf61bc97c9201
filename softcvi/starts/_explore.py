"""The default start: search near and far by Newton paths, and weigh what was found."""

import dataclasses
from typing import Any

import equinox as eqx
from jaxtyping import PRNGKeyArray

from softcvi.starts._base import AbstractStart, SearchEvidence, StartReport
from softcvi.starts._climb import climb
from softcvi.starts._double import Density, as_density
from softcvi.starts._evaluator import Evaluator
from softcvi.starts._importance import adapt, worth_keeping
from softcvi.starts._laplace import Laplace
from softcvi.starts._modes import GAP, Ends, distinct_ends, join_by_lines
from softcvi.starts._newton import LocalNormal, newton_path
from softcvi.starts._search import SCALES, Search
from softcvi.starts._tempered import Tempered
from softcvi.targets import AbstractTarget
from softcvi.targets._numpy_random import numpy_generator

# Most parameters for one path in the fit's own precision.
MAX_NEWTON_DIM = 200
# Most parameters for many paths and importance sampling.
_SEARCH_DIM = 100
# Batch size of the log density with all rows: few, as each is expensive.
_POINTS = 50
# Most places that are climbed again with all rows.
_PLACES = 16
# Weighted draws per round: so many per parameter, and at least.
_DRAWS_PER_PARAMETER = 25
_FEWEST_DRAWS = 250


class Explore(AbstractStart):
    """Climb from points near and far, then weigh the places that were found.

    Starts are the target's own (prior draws where the model has them), normal draws
    about the origin at several scales, and points around what was found. They go on
    until new ones lead to known places, by Good and Turing's estimate, or a budget of
    counted operations is used up. Then many points around the places are looked at for
    narrow or wide features that no path has met. Runs in double precision, whatever
    the fit uses: Hessians of badly scaled models need the digits.

    Args:
        paths: Least number of Newton paths.
        scales: Standard deviations of starts about the origin.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(
        ...     lambda x: -0.5 * jnp.sum((x - 3.0) ** 2), jnp.zeros(2)
        ... )
        >>> report = softcvi.starts.Explore().find(jax.random.key(0), target)
        >>> report.modes[0].mean.round(1).tolist()
        [3.0, 3.0]
    """

    paths: int = eqx.field(static=True, default=1)
    scales: tuple[float, ...] = eqx.field(static=True, default=SCALES)

    def find(self, key: PRNGKeyArray, target: AbstractTarget) -> StartReport:
        if not target.has_gradient or target.amortised:
            return Tempered().find(key, target)
        if target.structure.size > _SEARCH_DIM:
            return Laplace().find(key, target)
        thinned = target.thinned()
        if thinned is not None:
            report = self._find_by_few_rows(key, target, *thinned)
            if report is not None:
                return report
        density = as_density(target)
        with density.context():
            modes, search = Search(key, density, self.paths, self.scales).run()
        if not modes:
            words = "no path reached a finite density: start-up by label ESS"
            return StartReport(target, description=words)
        count = min(len(modes), search.num_places)
        words = f"{count} mode(s) found by {search.num_starts} Newton paths"
        if len(modes) > count:
            words = f"{words}, described by {len(modes)} parts"
        return StartReport(target, modes, search, words)

    def _find_by_few_rows(
        self,
        key: PRNGKeyArray,
        target: AbstractTarget,
        thinned: AbstractTarget,
        repeats: float,
    ) -> StartReport | None:
        """Search with a sample of the rows, then go on with all from what was found.

        A row of the sample counts several times, so that heights of places have errors
        as many times as large: places are kept that are lower by so much more.
        """
        density = as_density(thinned)
        with density.context():
            search = Search(key, density, self.paths, self.scales, repeats * GAP)
            _, evidence = search.run()
        if search.ends is None:
            return None
        return _on_all_rows(key, target, search.ends, evidence)

    def glimpse(self, key: PRNGKeyArray, target: AbstractTarget) -> StartReport | None:
        is_searched = target.has_gradient and not target.amortised
        if not is_searched:
            return None
        if target.structure.size > _SEARCH_DIM:
            return Laplace().glimpse(key, target)
        density = as_density(target)
        with density.context():
            modes = Search(key, density, self.paths, self.scales).glimpse()
        return StartReport(target, modes, description="a glimpse")


def _on_all_rows(
    key: PRNGKeyArray, target: AbstractTarget, ends: Ends, search: SearchEvidence
) -> StartReport | None:
    """Climb again from every place, and weigh the places that this leads to.

    Args:
        key: Random key.
        target: The posterior given all rows.
        ends: Where the paths of a search with a sample of the rows ended.
        search: How far that search has looked.

    Returns:
        What was found, or None where no path reached a finite density.
    """
    density = as_density(target)
    best = [members[0] for members in ends.groups()][:_PLACES]
    with density.context():
        log_density = Evaluator.of(density, _POINTS)
        found, _ = climb(density, ends.means[best])
        if not len(found.means):
            return None
        found = join_by_lines(distinct_ends(found), log_density)
        first = [members[0] for members in found.groups()]
        fitted = adapt(
            numpy_generator(key),
            log_density,
            [(found.means[i], found.covariances[i]) for i in first],
            found.elbos[first],
            draws=max(_FEWEST_DRAWS, _DRAWS_PER_PARAMETER * target.structure.size),
        )
    # The broad draws describe the posterior given fewer rows.
    search = dataclasses.replace(search, num_places=found.num_places, broad=None)
    words = (
        f"{found.num_places} mode(s) found by {search.num_starts} Newton paths with a "
        f"sample of the rows, then {len(best)} with all of them"
    )
    modes = worth_keeping(fitted)
    search = log_density.with_infinite(search, modes)
    return StartReport(target, modes, search, words)


def ascend_once(key: PRNGKeyArray, target: AbstractTarget, dtype: Any) -> LocalNormal:
    """Traceable: one path from the target's own start, in the fit's precision."""
    start = target.structure.ravel(target.initial_particle(key))
    return newton_path(Density(target, widened=False), start.astype(dtype))
