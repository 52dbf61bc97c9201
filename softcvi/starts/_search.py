"""One search: Newton paths from near and far, a scan for more places, their weights."""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, PRNGKeyArray

from softcvi.diagnostics import BroadMoments
from softcvi.starts._base import Moments, SearchEvidence
from softcvi.starts._climb import (
    Budget,
    climb,
    climb_terms,
    heights_between,
    prepare_climbs,
)
from softcvi.starts._double import Density
from softcvi.starts._evaluator import Evaluator
from softcvi.starts._heights import Roundings, WithoutErrors
from softcvi.starts._importance import Fitted, adapt, worth_keeping
from softcvi.starts._launch import (
    candidates,
    far_starts,
    first_finite,
    images,
    own_starts,
    starts_around,
)
from softcvi.starts._modes import (
    GAP,
    Ends,
    distinct_ends,
    join_by_lines,
    join_by_ridges,
    missing_mass,
    thinned,
)
from softcvi.starts._program_parts import inner_starts
from softcvi.starts._proposal import share_on_normal
from softcvi.starts._ridges import ridge_cost
from softcvi.starts._scan import (
    Scan,
    narrowest_on_lines,
    num_lines,
    scan_draws,
    scan_lines,
    smallest_feature,
)
from softcvi.starts._support import boxes_around, within_support, without_noise
from softcvi.starts._tempered import temper
from softcvi.targets._cost import cost_of
from softcvi.targets._numpy_random import numpy_generator

SCALES = (1.0, 3.0, 10.0, 30.0, 100.0)
# Least number of paths where there are several places.
_PATHS_OF_MANY = 512
# The search ends once the estimated mass of undiscovered places is below this share.
_MISSING = 0.005
_STARTS_PER_PLACE = 20
# A mixture describes the posterior if its share of effective draws is above this, or
# above this part of the share that a normal posterior of the same dimension reaches.
_GOOD_SHARE = (0.6, 0.85)
_MAX_SCANS = 2
# Ends of one place that may become components of their own.
_PARTS = 3
# Below this share of effective draws a tempered population is tried, of this size.
_POOR, _POPULATION = 0.003, 1000
# A component is added if the known ones miss more than this share of the mass, or of
# the variance of a parameter.
_WORTH_A_PART, _WORTH_A_WIDE_PART = 0.02, 0.1
# The description with fewer components is kept unless another one gains this much log
# evidence or, with several places, this much of the share of effective draws.
_SMALL_GAIN, _MORE_EVEN = 0.02, 0.1


class Search:
    """One search: the ends of all paths so far, and what is known of their places."""

    def __init__(
        self,
        key: PRNGKeyArray,
        density: Density,
        paths: int,
        scales: tuple[float, ...],
        gap: float = GAP,
    ):
        self.rng, self.key, self.density = numpy_generator(key), key, density
        self.budget = Budget.of_density(density)
        self.batch = self.budget.batch
        self.evaluate = Evaluator.of(density, self.budget.num_points)
        roundings = Roundings(self.rng, self.evaluate)
        self.log_density = WithoutErrors(self.evaluate, roundings)
        self.scales, self.gap = scales, gap
        self.dim = density.target.structure.size
        self.cost = cost_of(density.program())
        self.fewest = max(paths, self.budget.min_paths)
        self.good_share = min(
            _GOOD_SHARE[0], _GOOD_SHARE[1] * share_on_normal(self.dim)
        )
        self.ends: Ends | None = None
        self.terms: Ends | None = None
        self.num_starts, self.num_lines = 0, 0
        self.left_out, self.uncovered = 0.0, 0.0
        self.broad: BroadMoments | None = None

    def run(self) -> tuple[tuple[Moments, ...], SearchEvidence]:
        fitted = None
        prepare_climbs(self.density, self.budget)
        self._climb_program_parts()
        for num_scans in range(_MAX_SCANS + 1):
            while not self._has_enough_paths():
                self._climb_from(self._next_starts())
            if self.ends is None:
                break
            if self._finds_more_places() and num_scans < _MAX_SCANS:
                continue
            fitted = self._fit_places()
            scan = self._scan(fitted)
            if not len(scan.suspects):
                break
            known = len(self.ends.means)
            if num_scans < _MAX_SCANS:
                self._climb_from(np.resize(scan.suspects, (self.batch, self.dim)))
            if len(self.ends.means) == known:
                fitted = self._with_wider_part(fitted, scan)
                break
        if fitted is not None and fitted.ess_share < self.good_share:
            fitted = self._with_joined_places(fitted)
        # Populations take more than the whole search does where paths are frugal.
        is_poor = fitted is not None and fitted.ess_share < _POOR
        if fitted is None or (is_poor and self.budget.every is None):
            own, count = self._own_starts(_POPULATION), self.budget.num_draws
            # Where paths lead somewhere they tell how much has not been found.
            known = self.ends is not None
            again = temper(self.rng, self.log_density, own, _POPULATION, count, known)
            if again is not None and (
                fitted is None or again.fitted.score > fitted.score
            ):
                fitted = again.fitted
                self.left_out = max(self.left_out, again.missing_mass or 0.0)
                self._scan(fitted)
        modes = () if fitted is None else worth_keeping(fitted)
        return modes, self.evaluate.with_infinite(self._evidence(fitted), modes)

    def _finds_more_places(self) -> bool:
        """Whether climbs from mirror images and points on lines find another place."""
        assert self.ends is not None
        before, structure = self.ends.num_places, self.density.target.structure
        known, scanned = (self.rng, self.log_density), self.budget.num_line_points
        self._climb_from_suspects(images(*known, self.ends, structure, self.batch))
        self._climb_from_suspects(scan_lines(*known, self.ends, scanned, self.batch))
        self.num_lines += num_lines(scanned)
        return self.ends.num_places > before

    def _climb_from_suspects(self, suspects: Float[np.ndarray, "m d"]) -> None:
        if len(suspects):
            assert self.ends is not None
            # Other points fill the batch: repeats would count as further visits.
            others = starts_around(self.rng, self.ends, self.batch)
            self._climb_from(np.concatenate([suspects, others])[: self.batch])

    def glimpse(self) -> tuple[Moments, ...]:
        """Moments of the best place that the target's own starts lead to."""
        self._climb_from(self._next_starts())
        return () if self.ends is None else self._fit_groups(self.ends, [[0]]).modes

    def _scan(self, fitted: Fitted) -> Scan:
        n = self.budget.num_draws
        scan = scan_draws(self.rng, self.log_density, fitted, n, keep=self.batch)
        # The last scan counts, since it knows the most places.
        self.broad = scan.whole
        return scan

    def _with_wider_part(self, fitted: Fitted, scan: Scan) -> Fitted:
        """The description with a component added where mass is missing, if that helps.

        A wide component around a narrow one has no mode of its own that a path could
        reach. Its mass may be small, and yet it may determine the variance.
        """
        is_missing = (
            scan.missing > _WORTH_A_PART or scan.missing_variance > _WORTH_A_WIDE_PART
        )
        if is_missing:
            for more in self._with_more_parts(fitted, scan):
                if more.ess_share < self.good_share:
                    continue
                again = self._scan(more)
                left = again.missing_variance / max(scan.missing_variance, 1e-300)
                if self._is_better(more, fitted) or left < 0.5:
                    fitted, scan = more, again
        if fitted.ess_share > self.good_share:
            self.uncovered = scan.uncovered
        return fitted

    def _with_more_parts(self, fitted: Fitted, scan: Scan) -> Iterator[Fitted]:
        """Descriptions with a wide component, and with one component per term."""
        if scan.covariance is not None:
            starts = [(m.mean, m.dense) for m in fitted.modes]
            wide = scan.mean, scan.covariance
            known = [m.log_evidence for m in fitted.modes]
            masses = [-np.inf if mass is None else mass for mass in known]
            masses.append(fitted.log_evidence + np.log(scan.missing))
            yield self._adapted([*starts, wide], np.array(masses))
        if self.terms is not None and len(self.terms.means) > 1:
            yield self._fit_groups(self.terms, self.terms.each())

    def _is_better(self, more: Fitted, less: Fitted) -> bool:
        """Whether a mixture of more components is worth having.

        With one place, components that only approximate a curved shape are not: a flow
        does that better. With several places, components may overlap.
        """
        gain = more.ess_share - less.ess_share if len(less.modes) > 1 else 0.0
        is_better = more.score > less.score + _SMALL_GAIN or gain > _MORE_EVEN
        is_needed = less.ess_share < self.good_share
        return (is_better or is_needed) and more.ess_share > self.good_share

    def _next_starts(self) -> Float[np.ndarray, "b d"]:
        turn, n = self.num_starts // self.batch, candidates(self.batch)
        if turn == 0:
            points = self._own_starts(n)
        elif turn % 2 or self.ends is None:
            points = far_starts(self.rng, self.scales, self.dim, n, self.ends)
        else:
            points = starts_around(self.rng, self.ends, n)
        return first_finite(points, self.batch, self.log_density)

    def _own_starts(self, n: int) -> Float[np.ndarray, "n d"]:
        return own_starts(self.key, self.density.target, n)

    def _has_enough_paths(self) -> bool:
        if self.num_starts < self.fewest:
            return False
        if self.ends is None or self.ends.num_places == 1:
            return True
        if self.num_starts >= self.budget.max_paths:
            return True
        fewest = max(_PATHS_OF_MANY, _STARTS_PER_PLACE * self.ends.num_places)
        return self.num_starts >= fewest and self.ends.unseen_mass() < _MISSING

    def _climb_from(self, starts: Float[np.ndarray, "b d"], count: int = 1) -> None:
        self.num_starts += len(starts)
        new, flat = climb(self.density, starts, count, self.budget.every)
        new = new.and_others(boxes_around(self.rng, self.log_density, flat, count))
        new = self._without_noise(new)
        new = within_support(self.rng, self.log_density, new)
        both = new if self.ends is None else self.ends.and_others(new)
        if len(both.means):
            both = distinct_ends(self.log_density.places(both), self.gap)
            self.ends, left = thinned(join_by_lines(both, self.log_density))
            self.left_out = max(self.left_out, left)

    def _without_noise(self, new: Ends) -> Ends:
        """The ends that are no rounding errors, or all where nothing else is found."""
        kept = without_noise(self.rng, self.evaluate, new, self.density.rounding)
        is_last = self.ends is None and self.num_starts >= self.fewest
        return new if is_last and not len(kept.means) else kept

    def _climb_program_parts(self) -> None:
        """Climb parts of the program alone, then the density from where they led."""
        n = candidates(self.batch)
        points = first_finite(self._own_starts(n), self.batch, self.log_density)
        far = far_starts(self.rng, self.scales, self.dim, n)
        for inner in inner_starts(self.density, self.log_density, points, far):
            self._climb_from(inner, count=2)
        for ends in climb_terms(self.rng, self.density, points):
            # Counted twice: a place that a term leads to was not found by chance.
            self._climb_from(np.resize(ends.means, points.shape), count=2)
            self.terms = ends if self.terms is None else self.terms.and_others(ends)
        if self.terms is not None:
            self.terms = distinct_ends(self.terms)

    def _fit_places(self) -> Fitted:
        """Moments and evidence of every place; several components where needed."""
        assert self.ends is not None
        best = self._fit_groups(self.ends, [m[:1] for m in self.ends.groups()])
        # The density has no dip between a narrow place and a wide one around it, but
        # it takes two normals to describe them.
        parts = [
            m[i : i + 1] for m in self.ends.groups() for i in range(min(_PARTS, len(m)))
        ]
        if len(parts) > self.ends.num_places:
            by_parts = self._fit_groups(self.ends, parts)
            best = by_parts if self._is_better(by_parts, best) else best
        if self.terms is not None and len(self.terms.means) > 1:
            by_terms = self._fit_groups(self.terms, self.terms.each())
            best = by_terms if self._is_better(by_terms, best) else best
        return best

    def _with_joined_places(self, best: Fitted) -> Fitted:
        """Places that a ridge connects as one, as wide as all their ends together."""
        assert self.ends is not None
        before = self.ends.num_places
        if before > 1:
            heights = functools.partial(heights_between, self.density)
            most = max(self.batch, int(self.budget.ridges / ridge_cost(self.cost)))
            self.ends = join_by_ridges(self.ends, heights, self.batch, most)
            if self.ends.num_places < before:
                best = self._fit_groups(self.ends, [m[:1] for m in self.ends.groups()])
        if any(len(m) > 2 for m in self.ends.groups()):
            whole = self._fit_groups(self.ends, self.ends.groups())
            best = whole if whole.score > best.score + _SMALL_GAIN else best
        if self.ends.num_places == 1 and self.broad is not None:
            # The ends may cover one side of a curved place only.
            start = self.broad.means, np.diag(self.broad.deviations**2)
            broad = self._adapted([start])
            best = broad if broad.score > best.score + _SMALL_GAIN else best
        return best

    def _fit_groups(self, ends: Ends, groups: Sequence[Any]) -> Fitted:
        return self._adapted(*ends.moments_of(groups))

    def _adapted(self, *starts: Any) -> Fitted:
        n = self.budget.num_weighted
        return adapt(self.rng, self.log_density, *starts, draws=n)

    def _evidence(self, fitted: Fitted | None) -> SearchEvidence:
        ends = self.ends
        if self.terms is not None or (fitted and fitted.ess_share < self.good_share):
            fitted = None  # its widths are unreliable, or the program names all places
        unseen = missing_mass(ends, fitted, self.num_starts + self.num_lines)
        return SearchEvidence(
            num_starts=self.num_starts,
            num_places=0 if ends is None else ends.num_places,
            num_seen_once=0 if ends is None else ends.num_seen_once,
            scales=self.scales,
            smallest_feature=smallest_feature(self.budget.num_draws, self.dim),
            missing_mass=max(unseen, self.uncovered, self.left_out),
            broad=self.broad,
            narrowest_apart=narrowest_on_lines(self.budget.num_line_points, self.dim),
        )
