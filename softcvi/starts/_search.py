"""One search: Newton paths from near and far, a look around, weights of places."""

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
from softcvi.starts._importance import Fitted, adapt, share_on_normal, worth_keeping
from softcvi.starts._launch import (
    candidates,
    far_starts,
    first_finite,
    images,
    own_starts,
    starts_around,
)
from softcvi.starts._look import (
    Look,
    look_around,
    narrowest_met,
    num_rays,
    smallest_feature,
    suspects_on_rays,
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
from softcvi.starts._ridges import ridge_cost
from softcvi.starts._support import boxes_around, within_support, without_noise
from softcvi.starts._tempered import Evaluator, temper
from softcvi.targets._cost import cost_of
from softcvi.targets._numpy_random import numpy_generator

_BATCH = 16
# Points that the program of the log density takes at once.
_POINTS = 500
SCALES = (1.0, 3.0, 10.0, 30.0, 100.0)
# Where there are several places.
_PATHS_OF_MANY = 512
# Estimated share of the mass in places not seen yet, at which the search ends.
_MISSING = 0.005
_STARTS_PER_PLACE = 20
# A mixture with so large a share of effective draws is the posterior: this, or a part
# of what a normal posterior has in so many dimensions.
_EXPLAINED = (0.6, 0.85)
_LOOKS = 2
# Ends of a place that may be parts of their own.
_PARTS = 3
# Share of effective draws below which a tempered population is tried instead.
_POOR, _POPULATION = 0.003, 1000
# Share of the mass outside what is known, or of the variance of a parameter, for which
# a part is added.
_WORTH_A_PART, _WORTH_A_WIDE_PART = 0.02, 0.1
# Gain of log evidence below which the simpler description is kept, unless it gains so
# much of the share of effective draws and there are several places.
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
        self.log_density = Evaluator(density, _POINTS)
        self.scales, self.gap = scales, gap
        self.dim = density.target.structure.size
        self.cost = cost_of(density.program())
        self.budget = Budget.of(self.cost, self.dim)
        self.fewest = max(paths, self.budget.fewest)
        self.explained = min(_EXPLAINED[0], _EXPLAINED[1] * share_on_normal(self.dim))
        self.ends: Ends | None = None
        self.terms: Ends | None = None
        self.num_starts, self.num_rays = 0, 0
        self.left_out, self.uncovered = 0.0, 0.0
        self.broad: BroadMoments | None = None

    def run(self) -> tuple[tuple[Moments, ...], SearchEvidence]:
        fitted = None
        prepare_climbs(self.density, _BATCH)
        self._ascend_named()
        for looks in range(_LOOKS + 1):
            while not self._is_enough():
                self._ascend(self._next_starts())
            if self.ends is None:
                break
            if self._sees_more() and looks < _LOOKS:
                continue
            fitted = self._weighed()
            look = self._look(fitted)
            if not len(look.suspects):
                break
            known = len(self.ends.means)
            if looks < _LOOKS:
                self._ascend(np.resize(look.suspects, (_BATCH, self.dim)))
            if len(self.ends.means) == known:
                fitted = self._with_wider_part(fitted, look)
                break
        if fitted is not None and fitted.ess_share < self.explained:
            fitted = self._joined(fitted)
        if fitted is None or fitted.ess_share < _POOR:
            own, looked = self._own(_POPULATION), self.budget.looked
            again = temper(self.rng, self.log_density, own, _POPULATION, looked)
            if again is not None and (fitted is None or again.score > fitted.score):
                fitted = again
        return () if fitted is None else worth_keeping(fitted), self._evidence(fitted)

    def _sees_more(self) -> bool:
        """Climb from images of places and from what lines meet; whether that is new."""
        assert self.ends is not None
        before, structure = self.ends.num_places, self.density.target.structure
        known, scanned = (self.rng, self.log_density), self.budget.scanned
        self._ascend_suspects(images(*known, self.ends, structure, _BATCH))
        self._ascend_suspects(suspects_on_rays(*known, self.ends, scanned, _BATCH))
        self.num_rays += num_rays(scanned)
        return self.ends.num_places > before

    def _ascend_suspects(self, suspects: Float[np.ndarray, "m d"]) -> None:
        if len(suspects):
            assert self.ends is not None
            # Others fill the batch: the same twice would count as seen twice.
            others = starts_around(self.rng, self.ends, _BATCH)
            self._ascend(np.concatenate([suspects, others])[:_BATCH])

    def glimpse(self) -> tuple[Moments, ...]:
        """Moments of the best place that the target's own starts lead to."""
        self._ascend(self._next_starts())
        return () if self.ends is None else self._fit_of(self.ends, [[0]]).modes

    def _look(self, fitted: Fitted) -> Look:
        n = self.budget.looked
        look = look_around(self.rng, self.log_density, fitted, n, keep=_BATCH)
        # The last one: it is the look at most of what is known.
        self.broad = look.whole
        return look

    def _with_wider_part(self, fitted: Fitted, look: Look) -> Fitted:
        """What is known with a part added where mass is missing, if that explains it.

        A wide part around a narrow one has no mode of its own that a path could reach.
        It may be small in mass and yet decide the variance.
        """
        is_missing = (
            look.missing > _WORTH_A_PART or look.missing_variance > _WORTH_A_WIDE_PART
        )
        if is_missing:
            for more in self._with_more_parts(fitted, look):
                if more.ess_share < self.explained:
                    continue
                again = self._look(more)
                left = again.missing_variance / max(look.missing_variance, 1e-300)
                if self._is_better(more, fitted) or left < 0.5:
                    fitted, look = more, again
        if fitted.ess_share > self.explained:
            self.uncovered = look.uncovered
        return fitted

    def _with_more_parts(self, fitted: Fitted, look: Look) -> Iterator[Fitted]:
        """Descriptions with a wide part, and with all terms as parts."""
        if look.covariance is not None:
            starts = [(m.mean, m.dense) for m in fitted.modes]
            wide = look.mean, look.covariance
            known = [m.log_evidence for m in fitted.modes]
            masses = [-np.inf if mass is None else mass for mass in known]
            masses.append(fitted.log_evidence + np.log(look.missing))
            yield adapt(self.rng, self.log_density, [*starts, wide], np.array(masses))
        if self.terms is not None and len(self.terms.means) > 1:
            yield self._fit_of(self.terms, self.terms.each())

    def _is_better(self, more: Fitted, less: Fitted) -> bool:
        """Whether a mixture of more parts explains the posterior, the other does not.

        Parts that only come closer to what is bent are not worth having where there is
        one place: a flow does that. Among several, overlapping ones are told apart.
        """
        gain = more.ess_share - less.ess_share if len(less.modes) > 1 else 0.0
        is_better = more.score > less.score + _SMALL_GAIN or gain > _MORE_EVEN
        is_needed = less.ess_share < self.explained
        return (is_better or is_needed) and more.ess_share > self.explained

    def _next_starts(self) -> Float[np.ndarray, "b d"]:
        turn, n = self.num_starts // _BATCH, candidates(_BATCH)
        if turn == 0:
            points = self._own(n)
        elif turn % 2 or self.ends is None:
            points = far_starts(self.rng, self.scales, self.dim, n, self.ends)
        else:
            points = starts_around(self.rng, self.ends, n)
        return first_finite(points, _BATCH, self.log_density)

    def _own(self, n: int) -> Float[np.ndarray, "n d"]:
        return own_starts(self.key, self.density.target, n)

    def _is_enough(self) -> bool:
        if self.num_starts < self.fewest:
            return False
        if self.ends is None or self.ends.num_places == 1:
            return True
        if self.num_starts >= self.budget.most:
            return True
        fewest = max(_PATHS_OF_MANY, _STARTS_PER_PLACE * self.ends.num_places)
        return self.num_starts >= fewest and self.ends.unseen_mass() < _MISSING

    def _ascend(self, starts: Float[np.ndarray, "b d"], count: int = 1) -> None:
        self.num_starts += len(starts)
        new, flat = climb(self.density, starts, count)
        new = new.and_others(boxes_around(self.rng, self.log_density, flat, count))
        new = without_noise(self.rng, self.log_density, new, self.density.rounding)
        new = within_support(self.rng, self.log_density, new)
        both = new if self.ends is None else self.ends.and_others(new)
        if len(both.means):
            both = distinct_ends(both, self.gap)
            self.ends, left = thinned(join_by_lines(both, self.log_density))
            self.left_out = max(self.left_out, left)

    def _ascend_named(self) -> None:
        """Climb what the program names, then from where that led to."""
        n = candidates(_BATCH)
        points = first_finite(self._own(n), _BATCH, self.log_density)
        far = far_starts(self.rng, self.scales, self.dim, n)
        for inner in inner_starts(self.density, self.log_density, points, far):
            self._ascend(inner, count=2)
        for ends in climb_terms(self.rng, self.density, points):
            # Not once: what all terms lead to is not there by luck.
            self._ascend(np.resize(ends.means, points.shape), count=2)
            self.terms = ends if self.terms is None else self.terms.and_others(ends)
        if self.terms is not None:
            self.terms = distinct_ends(self.terms)

    def _weighed(self) -> Fitted:
        """Moments and evidence of every place, told apart with care where needed."""
        assert self.ends is not None
        best = self._fit_of(self.ends, [m[:1] for m in self.ends.groups()])
        # A narrow place inside a wide one is no place of its own by the density on
        # the line between them, but two normals explain what one cannot.
        parts = [
            m[i : i + 1] for m in self.ends.groups() for i in range(min(_PARTS, len(m)))
        ]
        if len(parts) > self.ends.num_places:
            by_parts = self._fit_of(self.ends, parts)
            best = by_parts if self._is_better(by_parts, best) else best
        if self.terms is not None and len(self.terms.means) > 1:
            by_terms = self._fit_of(self.terms, self.terms.each())
            best = by_terms if self._is_better(by_terms, best) else best
        return best

    def _joined(self, best: Fitted) -> Fitted:
        """Places that a ridge connects as one, and bent ones as wide as their ends."""
        assert self.ends is not None
        before = self.ends.num_places
        if before > 1:
            heights = functools.partial(heights_between, self.density)
            most = max(_BATCH, int(self.budget.ridges / ridge_cost(self.cost)))
            self.ends = join_by_ridges(self.ends, heights, _BATCH, most)
            if self.ends.num_places < before:
                best = self._fit_of(self.ends, [m[:1] for m in self.ends.groups()])
        if any(len(m) > 2 for m in self.ends.groups()):
            whole = self._fit_of(self.ends, self.ends.groups())
            best = whole if whole.score > best.score + _SMALL_GAIN else best
        if self.ends.num_places == 1 and self.broad is not None:
            # Ends may have met one side of what is bent only.
            start = self.broad.means, np.diag(self.broad.deviations**2)
            broad = adapt(self.rng, self.log_density, [start])
            best = broad if broad.score > best.score + _SMALL_GAIN else best
        return best

    def _fit_of(self, ends: Ends, groups: Sequence[Any]) -> Fitted:
        return adapt(self.rng, self.log_density, *ends.moments_of(groups))

    def _evidence(self, fitted: Fitted | None) -> SearchEvidence:
        ends = self.ends
        if self.terms is not None or (fitted and fitted.ess_share < self.explained):
            fitted = None  # its widths say nothing, or all terms are known
        unseen = missing_mass(ends, fitted, self.num_starts + self.num_rays)
        return SearchEvidence(
            num_starts=self.num_starts,
            num_places=0 if ends is None else ends.num_places,
            num_seen_once=0 if ends is None else ends.num_seen_once,
            scales=self.scales,
            smallest_feature=smallest_feature(self.budget.looked, self.dim),
            missing_mass=max(unseen, self.uncovered, self.left_out),
            broad=self.broad,
            narrowest_apart=narrowest_met(self.budget.scanned, self.dim),
        )
