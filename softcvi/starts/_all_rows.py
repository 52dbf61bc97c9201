"""Places that a sample of the rows led to, on all rows."""

import dataclasses

from jaxtyping import PRNGKeyArray

from softcvi.starts._base import SearchEvidence, StartReport
from softcvi.starts._climb import climb
from softcvi.starts._double import as_density
from softcvi.starts._importance import adapt, worth_keeping
from softcvi.starts._modes import Ends, distinct_ends, join_by_lines
from softcvi.starts._tempered import Evaluator
from softcvi.targets import AbstractTarget
from softcvi.targets._numpy_random import numpy_generator

# Points that the program of the log density takes at once: few, as each is expensive.
_POINTS = 50
# Places that are climbed again; what is lower has no mass.
_PLACES = 16
# Weighted draws of a round, for each parameter and at least.
_DRAWS_PER_PARAMETER = 25
_FEWEST_DRAWS = 250


def on_all_rows(
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
        log_density = Evaluator(density, _POINTS)
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
    # Broad draws of a search with fewer rows are about another posterior.
    search = dataclasses.replace(search, num_places=found.num_places, broad=None)
    words = (
        f"{found.num_places} mode(s) found by {search.num_starts} Newton paths with a "
        f"sample of the rows, then {len(best)} with all of them"
    )
    return StartReport(target, worth_keeping(fitted), search, words)
