"""Means and standard deviations of draws, joined over parts, and compared."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from softcvi_experiments.large._posterior import Bounds, Values


@dataclasses.dataclass(frozen=True)
class Moments:
    """Means and standard deviations of every scalar, from so many independent draws.

    Attributes:
        mean: By site.
        sd: By site.
        draws: Number of draws, or of effective ones for chains; infinite if exact.

    Example:
        >>> moments = Moments.of([{"x": np.array([1.0, 3.0])}])
        >>> float(moments.mean["x"]), float(moments.sd["x"]), moments.draws
        (2.0, 1.0, 2.0)
    """

    mean: Values
    sd: Values
    draws: float

    @classmethod
    def of(
        cls, parts: Iterable[Mapping[str, Any]], effective: float | None = None
    ) -> "Moments":
        """Moments of draws that come in parts.

        Args:
            parts: Arrays by site, draws along the first axis.
            effective: How many independent draws they are worth; by default all.
        """
        count = 0
        total: dict[str, Any] = {}
        squares: dict[str, Any] = {}
        shift: dict[str, np.ndarray] = {}
        for part in parts:
            for name, values in part.items():
                values = np.asarray(values, np.float64)
                centre = shift.setdefault(name, values.mean(axis=0))
                total[name] = total.get(name, 0.0) + np.sum(values - centre, axis=0)
                squares[name] = squares.get(name, 0.0) + np.sum(
                    (values - centre) ** 2, axis=0
                )
            count += len(values)
        mean = {name: shift[name] + total[name] / count for name in total}
        sd = {
            name: np.sqrt(squares[name] / count - (total[name] / count) ** 2)
            for name in total
        }
        return cls(mean, sd, float(count if effective is None else effective))

    @classmethod
    def joined(cls, parts: Iterable["Moments"]) -> "Moments":
        """Moments of all draws of several chains, each counted alike."""
        parts = list(parts)
        mean = {n: np.mean([p.mean[n] for p in parts], axis=0) for n in parts[0].mean}
        sd = {
            n: np.sqrt(
                np.mean([p.sd[n] ** 2 + (p.mean[n] - mean[n]) ** 2 for p in parts], 0)
            )
            for n in mean
        }
        return cls(mean, sd, sum(p.draws for p in parts))

    def arrays(self) -> dict[str, np.ndarray]:
        """As named arrays, for a file."""
        named = {f"mean {name}": value for name, value in self.mean.items()}
        named |= {f"sd {name}": value for name, value in self.sd.items()}
        return {**named, "draws": np.asarray(self.draws)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Moments":
        """The same from a file."""

        def named(prefix: str) -> dict[str, np.ndarray]:
            return {
                key.removeprefix(prefix): value
                for key, value in arrays.items()
                if key.startswith(prefix)
            }

        return cls(named("mean "), named("sd "), float(arrays["draws"]))

    def compare(self, right: "Moments", bounds: Bounds) -> dict[str, float]:
        """How far these are from the right ones, as numbers for a record.

        Args:
            right: The right moments.
            bounds: What counts as close.
        """
        shift, ratio = [], []
        for name, mean in right.mean.items():
            sd = right.sd[name]
            shift.append(np.ravel(np.abs(self.mean[name] - mean) / sd))
            ratio.append(np.ravel(self.sd[name] / sd))
        shifts, ratios = np.concatenate(shift), np.concatenate(ratio)
        is_close = (shifts <= bounds.mean) & (np.abs(ratios - 1) <= bounds.sd)
        # Largest of many normal errors, with one standard error for draws and answer.
        error = np.sqrt(1 / self.draws + 1 / right.draws)
        return {
            "mean_error": float(np.max(shifts)),
            "mean_error_99": float(np.quantile(shifts, 0.99)),
            "sd_low": float(np.min(ratios)),
            "sd_high": float(np.max(ratios)),
            "share_close": float(np.mean(is_close)),
            "monte_carlo_error": float(error * np.sqrt(2 * np.log(2 * shifts.size))),
        }
