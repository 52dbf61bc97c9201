"""Telling places apart: which ends of paths belong to one mode of the posterior.

Two ends are in one place if the density does not dip between them: on the straight
line, or on the highest way. For the latter each point of the line moves uphill, across
the line, until it lies on the ridge, if there is one (the string method of E, Ren and
Vanden-Eijnden, 2007).
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float

from softcvi.starts._importance import Fitted, LogDensity
from softcvi.starts._proposal import factor_of
from softcvi.starts._ridges import line

_LINE_POINTS = 17
# Least depth in nats of the dip between two separate places.
DIP = 3.0
# Ends whose bound is lower than the best by more nats are left out.
GAP = 15.0
# Places that are kept, and ends of each.
_MOST_PLACES = 64
_MOST_ENDS = 32
_NEIGHBOURS = 4
# Draws around a wide place detect a narrow one up to this distance: in standard
# deviations, relative to the typical distance of a normal draw.
_REACH_OF_LOOK = 3.0


class Ends(eqx.Module):
    """Where paths have ended: local normals, with how often each was reached.

    Attributes:
        means: Their means.
        covariances: Their covariances.
        elbos: Their evidence lower bounds.
        counts: Number of paths that ended there.
        places: Number of the place that each belongs to.
    """

    means: Float[np.ndarray, "m d"]
    covariances: Float[np.ndarray, "m d d"]
    elbos: Float[np.ndarray, " m"]
    counts: np.ndarray
    places: np.ndarray

    @classmethod
    def none(cls, dim: int) -> "Ends":
        """No ends."""
        zero = np.zeros(0, int)
        return cls(np.zeros((0, dim)), np.zeros((0, dim, dim)), np.zeros(0), zero, zero)

    @property
    def num_places(self) -> int:
        """Number of separate places."""
        return len(np.unique(self.places))

    def and_others(self, other: "Ends") -> "Ends":
        """These and others, each of them a place of its own."""
        pairs = (
            (self.means, other.means),
            (self.covariances, other.covariances),
            (self.elbos, other.elbos),
            (self.counts, other.counts),
        )
        arrays = [np.concatenate(pair) for pair in pairs]
        return Ends(*arrays, np.arange(len(arrays[0])))

    def among(self, kept: Bool[np.ndarray, " m"]) -> "Ends":
        """Some of these, each of them a place of its own.

        Args:
            kept: Which.
        """
        fields = self.means, self.covariances, self.elbos, self.counts
        return Ends(*(field[kept] for field in fields), np.arange(np.sum(kept)))

    def counts_by_place(self) -> np.ndarray:
        """Number of paths that ended in each place."""
        return np.bincount(self.places, weights=self.counts).astype(int)

    @property
    def num_seen_once(self) -> int:
        """Number of places that one path ended in."""
        return int(np.sum(self.counts_by_place() == 1))

    def unseen_mass(self) -> float:
        """Estimated share of the mass in places that no path has ended in.

        A place that a start leads to with probability b is missed by n starts about as
        often as it is seen once, for every b for which either is likely. So the mass
        of the places not seen is about that of the places seen once (Good, 1953, with
        masses for counts).
        """
        counts = self.counts_by_place()
        best = np.array([self.elbos[self.members(p)[0]] for p in range(len(counts))])
        mass = np.exp(best - np.max(best))
        once = float(np.sum(mass[counts == 1]))
        return once / (once + float(np.sum(mass)))

    def groups(self) -> list[np.ndarray]:
        """Ends of every place, the best of each first."""
        return [self.members(place) for place in range(self.num_places)]

    def each(self) -> list[np.ndarray]:
        """Every end by itself."""
        return [np.array([end]) for end in range(len(self.means))]

    def moments_of(
        self, groups: Sequence[Any]
    ) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
        """Mean and covariance of each group of ends, and the best bound in it."""
        moments = []
        for group in groups:
            mean = np.mean(self.means[group], axis=0)
            centred = self.means[group] - mean
            between = centred.T @ centred / len(group)
            within = np.mean(self.covariances[group], axis=0)
            moments.append((mean, within + between))
        return moments, np.array([np.max(self.elbos[group]) for group in groups])

    def members(self, place: int | np.integer) -> np.ndarray:
        """Ends of one place, the best first."""
        return np.flatnonzero(self.places == place)


def distinct_ends(ends: Ends, gap: float = GAP) -> Ends:
    """Join ends that lie within a standard deviation of each other, best first.

    Args:
        ends: The ends.
        gap: Those that are lower than the best by more are left out.
    """
    means, covariances, elbos = ends.means, ends.covariances, ends.elbos
    order = np.argsort(-elbos, kind="stable")
    # The best one stays, also where rounding of its bound exceeds the gap.
    order = order[elbos[order] >= elbos[order[0]] - gap]
    kept: list[int] = []
    total: list[int] = []
    inverses: list[np.ndarray] = []
    for i in order:
        inverse = np.linalg.inv(factor_of(covariances[i]))
        if kept:
            step = means[kept] - means[i]
            there = np.einsum("kij,kj->ki", np.stack(inverses), step)
            # Near in the units of both: a narrow place inside a wide one is separate.
            square = np.maximum(
                np.sum((step @ inverse.T) ** 2, axis=1), np.sum(there**2, axis=1)
            )
            near = int(np.argmin(square))
            if square[near] < 1.0:
                total[near] += int(ends.counts[i])
                continue
        kept.append(int(i))
        total.append(int(ends.counts[i]))
        inverses.append(inverse)
    return Ends(
        means[kept],
        covariances[kept],
        elbos[kept],
        np.array(total, int),
        np.arange(len(kept)),
    )


def thinned(ends: Ends) -> tuple[Ends, float]:
    """The best ends of the best places, and the share of the mass in other places.

    Paths that end all over one bent or heavy-tailed place must not crowd others out.
    """
    groups = ends.groups()
    kept = [members[:_MOST_ENDS] for members in groups[:_MOST_PLACES]]
    counts = ends.counts.copy()
    for members, few in zip(groups, kept, strict=False):
        counts[few[0]] += np.sum(counts[members]) - np.sum(counts[few])
    best = np.array([ends.elbos[members[0]] for members in groups])
    mass = np.exp(best - np.max(best))
    left = float(np.sum(mass[_MOST_PLACES:]) / np.sum(mass))
    index = np.sort(np.concatenate(kept))
    fields = ends.means, ends.covariances, ends.elbos, counts, ends.places
    return Ends(*(field[index] for field in fields)), left


def join_by_lines(ends: Ends, log_density: LogDensity) -> Ends:
    """Join ends that straight lines without a dip connect.

    Highest lines first, and a dip counts from the lower of the best ends of the two
    places: a path that ended on the saddle between two modes joins one of them only.
    """
    pairs = _nearest_pairs(ends, np.arange(len(ends.means)), _NEIGHBOURS)
    pairs = [(i, j) for i, j in pairs if ends.places[i] != ends.places[j]]
    if not pairs:
        return ends
    points = np.concatenate(
        [line(ends.means[i], ends.means[j], _LINE_POINTS) for i, j in pairs]
    )
    values = np.asarray(log_density(points)).reshape(len(pairs), _LINE_POINTS)
    values = np.where(np.isnan(values), -np.inf, values)
    heights = np.full(len(ends.means), -np.inf)
    for (i, j), line_values in zip(pairs, values, strict=True):
        heights[[i, j]] = line_values[[0, -1]]
    lowest = np.min(values, axis=1)
    for pair in np.argsort(-lowest, kind="stable"):
        one, other = (ends.places == ends.places[end] for end in pairs[pair])
        top = min(np.max(heights[one]), np.max(heights[other]))
        if top - lowest[pair] <= DIP:
            ends = _joined(ends, [pairs[pair]], np.array([True]))
    return ends


def join_by_ridges(
    ends: Ends,
    heights: Callable[[Array, Array, Array], Float[np.ndarray, "b n"]],
    batch: int,
    most: int,
) -> Ends:
    """Join places that a curved path without a dip connects.

    Args:
        ends: The ends.
        heights: Log densities along the highest ways between a batch of points.
        batch: Size of these batches.
        most: Number of pairs to try; the nearest are.
    """
    best = np.array([ends.members(p)[0] for p in np.unique(ends.places)])
    pairs = _nearest_pairs(ends, best, 2)[:most]
    joined = ends
    for begin in range(0, len(pairs), batch):
        some = pairs[begin : begin + batch]
        i, j = np.array(list(some) + [some[0]] * (batch - len(some))).T
        factors = np.stack(
            [
                factor_of(0.5 * (ends.covariances[a] + ends.covariances[b]))
                for a, b in zip(i, j, strict=True)
            ]
        )
        values = np.asarray(heights(ends.means[i], ends.means[j], factors))
        joined = _joined(joined, some, _depths(values)[: len(some)] <= DIP)
    return joined


def _depths(values: Float[np.ndarray, "b n"]) -> Float[np.ndarray, " b"]:
    """How far log densities fall below the lower end on each path."""
    values = np.where(np.isnan(values), -np.inf, values)
    with np.errstate(invalid="ignore"):  # NaN: the path leaves the support
        return np.minimum(values[:, 0], values[:, -1]) - np.min(values, axis=1)


def _nearest_pairs(ends: Ends, among: np.ndarray, number: int) -> list[tuple[int, int]]:
    """Each of some ends with its nearest others, in its own units; nearest first."""
    pairs: dict[tuple[int, int], float] = {}
    for i in among:
        inverse = np.linalg.inv(factor_of(ends.covariances[i]))
        square = np.sum(((ends.means[among] - ends.means[i]) @ inverse.T) ** 2, axis=1)
        for nearest in np.argsort(square, kind="stable")[: number + 1]:
            j = among[nearest]
            if i != j:
                pair = int(min(i, j)), int(max(i, j))
                pairs[pair] = min(float(square[nearest]), pairs.get(pair, np.inf))
    return sorted(pairs, key=lambda pair: pairs[pair])


def _joined(ends: Ends, pairs: list[tuple[int, int]], connected: np.ndarray) -> Ends:
    places = ends.places.copy()
    for (i, j), is_connected in zip(pairs, connected, strict=True):
        if is_connected:
            low, high = sorted((places[i], places[j]))
            places[places == high] = low
    # Numbered by their best ends, which come first.
    _, first = np.unique(places, return_index=True)
    number = {places[i]: k for k, i in enumerate(np.sort(first))}
    places = np.array([number[p] for p in places])
    return Ends(ends.means, ends.covariances, ends.elbos, ends.counts, places)


def missing_mass(ends: Ends | None, fitted: Fitted | None, num_starts: int) -> float:
    """Estimated share of the mass in places that no start has led to.

    Args:
        ends: Where paths have ended.
        fitted: Moments of the places, if a mixture of them explains the posterior.
        num_starts: Number of starts.
    """
    if ends is None:
        return 0.0
    if fitted is None:
        return ends.unseen_mass()
    return max(ends.unseen_mass(), mass_like_missed(fitted, num_starts))


def mass_like_missed(fitted: Fitted, num_starts: int) -> float:
    """Mass of places so narrow that the starts would miss another like them.

    From far away every start leads to the widest place that it faces. A place which is
    narrower by a factor r is faced in a share r^(d - 1) of the directions. Where such
    places were found, by luck, there may be more.

    Args:
        fitted: Moments and evidence of the places.
        num_starts: Number of starts.
    """
    modes = [m for m in fitted.modes if m.log_evidence is not None]
    if len(modes) < 2:
        return 0.0
    mass = np.array([m.log_evidence for m in modes])
    mass = np.exp(mass - np.max(mass))
    mass = mass / np.sum(mass)
    means = np.stack([m.mean for m in modes])
    dim = means.shape[1]
    widths = np.array([0.5 * np.linalg.slogdet(m.dense)[1] / dim for m in modes])
    missed = 0.0
    for k, mode in enumerate(modes):
        others = [j for j in range(len(modes)) if widths[j] > widths[k]]
        apart = [j for j in others if not _is_within(mode.mean, modes[j])]
        if apart:
            narrower = float(widths[k] - np.max(widths[apart]))
            share = np.exp((dim - 1) * narrower)
            missed += float(mass[k] * (1 - share) ** num_starts)
    return missed / (1.0 + missed)


def _is_within(point: np.ndarray, mode) -> bool:
    centred = point - mode.mean
    square = centred @ np.linalg.solve(mode.dense, centred)
    return bool(square < _REACH_OF_LOOK**2 * len(point))
