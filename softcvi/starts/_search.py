"""One search: Newton paths from near and far, a look around, weights of places."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi._compile import rarely_run
from softcvi.starts._base import (
    Moments,
    SearchEvidence,
)
from softcvi.starts._cost import cost_of
from softcvi.starts._double import Density
from softcvi.starts._importance import Fitted, adapt, worth_keeping
from softcvi.starts._launch import (
    candidates,
    far_starts,
    first_finite,
    own_starts,
    starts_around,
)
from softcvi.starts._look import Look, look_around, smallest_feature
from softcvi.starts._modes import (
    Ends,
    along,
    distinct_ends,
    join_by_lines,
    join_by_ridges,
    ridge,
    ridge_cost,
)
from softcvi.starts._newton import LocalNormal, newton_paths
from softcvi.starts._proposal import share_on_normal
from softcvi.starts._tempered import Evaluator, temper
from softcvi.targets._numpy_random import numpy_generator

_BATCH = 16
# Points that the program of the log density takes at once.
_POINTS = 500
SCALES = (1.0, 3.0, 10.0, 30.0, 100.0)
# Elementary operations that the search may take: about a second on two cores if there
# is one place, and several where there are many.
_BUDGET = 4e8
_BUDGET_OF_MANY = 1.5e10
_PATHS = (32, 64)
_PATHS_OF_MANY = (64, 1024)
_ITERATIONS = 20
_LOOK = (1_000, 32_000)
# Good and Turing's probability of a place not seen yet, at which the search ends.
_MISSING = 0.02
_STARTS_PER_PLACE = 20
# A mixture with so large a share of effective draws is the posterior: this, or a part
# of the share that a normal posterior has in so many dimensions.
_EXPLAINED = (0.6, 0.85)
# Elementary operations for ridges between places.
_BUDGET_OF_RIDGES = 3e9
_LOOKS = 2
# Ends of a place that may be parts of their own.
_PARTS = 3
# Share of effective draws below which a tempered population is tried instead.
_POOR = 0.003
_POPULATION = 1000
# Share of the mass outside what is known for which a part is added.
_WORTH_A_PART = 0.02
# And share of the variance of a parameter.
_WORTH_A_WIDE_PART = 0.1
# Gain of log evidence below which the simpler description is kept.
_SMALL_GAIN = 0.02


class Search:
    """One search: the ends of all paths so far, and what is known of their places."""

    def __init__(
        self,
        key: PRNGKeyArray,
        density: Density,
        paths: int,
        scales: tuple[float, ...],
    ):
        self.rng = numpy_generator(key)
        self.key = key
        self.density = density
        self.log_density = Evaluator(density, _POINTS)
        self.scales = scales
        self.dim = density.target.structure.size
        self.cost = cost_of(density.program())
        per_path = _ITERATIONS * (3 * self.dim + 50) * self.cost
        self.fewest = max(paths, int(np.clip(_BUDGET / per_path, *_PATHS)))
        self.most = int(np.clip(_BUDGET_OF_MANY / per_path, *_PATHS_OF_MANY))
        self.looked = int(np.clip(_BUDGET / self.cost, *_LOOK))
        self.explained = min(_EXPLAINED[0], _EXPLAINED[1] * share_on_normal(self.dim))
        self.ends: Ends | None = None
        self.num_starts = 0
        self.uncovered = 0.0

    def run(self) -> tuple[tuple[Moments, ...], SearchEvidence]:
        fitted = None
        for looks in range(_LOOKS + 1):
            while not self._is_enough():
                self._ascend(self._next_starts())
            if self.ends is None:
                break
            fitted = self._weighed()
            look = self._look(fitted)
            if not len(look.suspects):
                break
            before = len(self.ends.means)
            if looks < _LOOKS:
                self._ascend(np.resize(look.suspects, (_BATCH, self.dim)))
            if len(self.ends.means) == before:
                fitted = self._with_wider_part(fitted, look)
                break
        if fitted is not None and fitted.ess_share < self.explained:
            fitted = self._joined(fitted)
        if fitted is None or fitted.ess_share < _POOR:
            own = own_starts(self.key, self.density.target, _POPULATION)
            again = temper(self.rng, self.log_density, own, _POPULATION)
            fitted = (
                again if again is not None and _is_higher(again, fitted) else fitted
            )
        return () if fitted is None else worth_keeping(fitted), self._evidence()

    def glimpse(self) -> tuple[Moments, ...]:
        """Moments of the best place that the target's own starts lead to."""
        self._ascend(self._next_starts())
        if self.ends is None:
            return ()
        return self._fit_of([np.arange(1)]).modes

    def _look(self, fitted: Fitted) -> Look:
        return look_around(self.rng, self.log_density, fitted, self.looked, keep=_BATCH)

    def _with_wider_part(self, fitted: Fitted, look: Look) -> Fitted:
        """What is known with a part added where mass is missing, if that explains it.

        A wide part around a narrow one has no mode of its own that a path could reach.
        It may be small in mass and yet decide the variance.
        """
        is_missing = (
            look.missing > _WORTH_A_PART or look.missing_variance > _WORTH_A_WIDE_PART
        )
        if is_missing and look.covariance is not None:
            starts = [(m.mean, m.dense) for m in fitted.modes]
            wide = look.mean, look.covariance
            more = adapt(self.rng, self.log_density, [*starts, wide])
            if more.ess_share > self.explained:
                again = self._look(more)
                left = again.missing_variance / max(look.missing_variance, 1e-300)
                if self._is_better(more, fitted) or left < 0.5:
                    fitted, look = more, again
        if fitted.ess_share > self.explained:
            self.uncovered = look.uncovered
        return fitted

    def _is_better(self, more: Fitted, less: Fitted) -> bool:
        """Whether a mixture of more parts explains the posterior, the other does not.

        Parts that only come closer to what is bent are not worth having: a flow does
        that.
        """
        return more.ess_share > self.explained and (
            less.ess_share < self.explained or more.score > less.score + _SMALL_GAIN
        )

    def _next_starts(self) -> Float[np.ndarray, "b d"]:
        turn, n = self.num_starts // _BATCH, candidates(_BATCH)
        if turn == 0:
            points = own_starts(self.key, self.density.target, n)
        elif turn % 2 or self.ends is None:
            points = far_starts(self.rng, self.scales, self.dim, n)
        else:
            points = starts_around(self.rng, self.ends, n)
        return first_finite(points, _BATCH, self.log_density)

    def _is_enough(self) -> bool:
        if self.num_starts < self.fewest:
            return False
        if self.ends is None or self.ends.num_places == 1:
            return True
        if self.num_starts >= self.most:
            return True
        few = self.num_starts < max(
            _PATHS_OF_MANY[0], _STARTS_PER_PLACE * self.ends.num_places
        )
        return not few and self._seen_once() / self.num_starts < _MISSING

    def _seen_once(self) -> int:
        if self.ends is None:
            return 0
        return int(np.sum(self.ends.counts_by_place() == 1))

    def _ascend(self, starts: Float[np.ndarray, "b d"]) -> None:
        found = _ascend(jnp.asarray(starts, self.density.dtype), self.density)
        means, covariances, elbos = (
            np.asarray(leaf, np.float64)
            for leaf in (found.mean, found.covariance, found.elbo)
        )
        self.num_starts += len(starts)
        is_usable = np.isfinite(elbos) & np.all(np.isfinite(means), axis=1)
        is_usable &= np.all(np.isfinite(covariances), axis=(1, 2))
        new = Ends(
            means[is_usable],
            covariances[is_usable],
            elbos[is_usable],
            np.ones(np.sum(is_usable), int),
            np.arange(np.sum(is_usable)),
        )
        both = new if self.ends is None else self.ends.and_others(new)
        if len(both.means):
            self.ends = join_by_lines(distinct_ends(both), self.log_density)

    def _weighed(self) -> Fitted:
        """Moments and evidence of every place, told apart with care where needed."""
        assert self.ends is not None
        best = self._fit_of([m[:1] for m in self._members()])
        # A narrow place inside a wide one is no place of its own by the density on
        # the line between them, but two normals explain what one cannot.
        parts = [
            m[i : i + 1] for m in self._members() for i in range(min(_PARTS, len(m)))
        ]
        if len(parts) > self.ends.num_places:
            by_parts = self._fit_of(parts)
            best = by_parts if self._is_better(by_parts, best) else best
        return best

    def _joined(self, best: Fitted) -> Fitted:
        """Places that a ridge connects as one, and bent ones as wide as their ends."""
        assert self.ends is not None
        if self.ends.num_places > 1:
            before = self.ends.num_places
            most = max(_BATCH, int(_BUDGET_OF_RIDGES / ridge_cost(self.cost)))
            self.ends = join_by_ridges(self.ends, self._heights, _BATCH, most)
            if self.ends.num_places < before:
                best = self._fit_of([m[:1] for m in self._members()])
        if any(len(m) > 2 for m in self._members()):
            whole = self._fit_of(self._members())
            best = whole if whole.score > best.score + _SMALL_GAIN else best
        return best

    def _members(self) -> list[np.ndarray]:
        assert self.ends is not None
        return [self.ends.members(p) for p in range(self.ends.num_places)]

    def _fit_of(self, groups: list[np.ndarray]) -> Fitted:
        assert self.ends is not None
        ends = self.ends
        starts, logits = [], []
        for group in groups:
            mean = np.mean(ends.means[group], axis=0)
            centred = ends.means[group] - mean
            between = centred.T @ centred / len(group)
            starts.append((mean, np.mean(ends.covariances[group], axis=0) + between))
            logits.append(np.max(ends.elbos[group]))
        return adapt(self.rng, self.log_density, starts, np.array(logits))

    def _heights(self, a: Array, b: Array, factors: Array) -> Array:
        dtype = self.density.dtype
        points = [jnp.asarray(leaf, dtype) for leaf in (a, b, factors)]
        return _on_ridges(*points, self.density)

    def _evidence(self) -> SearchEvidence:
        once = self._seen_once()
        return SearchEvidence(
            num_starts=self.num_starts,
            num_places=0 if self.ends is None else self.ends.num_places,
            num_seen_once=once,
            scales=self.scales,
            smallest_feature=smallest_feature(self.looked, self.dim),
            missing_mass=max(once / self.num_starts, self.uncovered),
        )


def _is_higher(one: Fitted, other: Fitted | None) -> bool:
    return other is None or one.score > other.score


@functools.partial(rarely_run, effort=0)
def _ascend(starts: Float[Array, "b d"], density: Density) -> LocalNormal:
    return newton_paths(density, starts)


@functools.partial(rarely_run, effort=0)
def _on_ridges(
    a: Float[Array, "b d"],
    b: Float[Array, "b d"],
    factors: Float[Array, "b d d"],
    density: Density,
) -> Float[Array, "b n"]:
    def heights(a, b, factor):
        way = ridge(density.value, density.gradient, a, b, factor)
        return along(density.value, way)

    return jax.vmap(heights)(a, b, factors)
