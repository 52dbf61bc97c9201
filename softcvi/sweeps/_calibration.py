"""What simulation-based calibration finds: ranks, and what they say."""

import dataclasses

import numpy as np
from jaxtyping import Int

# Ranks of a right posterior are uniform: their variance is 1 / 12, and that of their
# squared distance from the middle 1 / 180.
_VARIANCE = 1 / 12
_VARIANCE_OF_SQUARES = 1 / 180
# Standard errors beyond which a statistic counts, beside the largest of so many.
_ERRORS = 2.0
_LEVELS = (0.5, 0.9)


@dataclasses.dataclass(frozen=True)
class CalibrationRow:
    """How one scalar's posteriors lie about the values that made the data.

    Attributes:
        name: The scalar.
        bias: Mean rank minus a half, in standard deviations of a uniform rank: above
            zero if posteriors lie too low.
        spread: Spread of the ranks beside that of uniform ones: above one where
            posteriors are too narrow, below where they are too wide.
        coverage: Share of the data sets whose central intervals of 50 % and 90 % hold
            the value.
        finding: ``"calibrated"``, ``"too narrow"``, ``"too wide"`` or ``"biased"``.

    Example:
        >>> from softcvi.sweeps import CalibrationRow
        >>> CalibrationRow("mu", 0.0, 1.0, (0.5, 0.9), "calibrated").name
        'mu'
    """

    name: str
    bias: float
    spread: float
    coverage: tuple[float, float]
    finding: str


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Ranks of the values that made the data among the draws of their posteriors.

    Attributes:
        ranks: For each scalar, one rank per data set, from 0 to ``num_draws``.
        num_draws: Draws of each posterior.
        num_failed: Data sets whose fit failed; they have no ranks.

    Example:
        >>> import numpy as np
        >>> from softcvi.sweeps import Calibration
        >>> even = Calibration({"mu": np.arange(100)}, num_draws=99, num_failed=0)
        >>> even.calibrated
        True
    """

    ranks: dict[str, Int[np.ndarray, " datasets"]]
    num_draws: int
    num_failed: int

    @property
    def num_datasets(self) -> int:
        """Data sets with ranks."""
        return len(next(iter(self.ranks.values())))

    @property
    def errors(self) -> tuple[float, float]:
        """Standard errors of ``bias`` and ``spread`` of a calibrated posterior."""
        n = self.num_datasets
        return 1 / np.sqrt(n), np.sqrt(_VARIANCE_OF_SQUARES / n) / _VARIANCE

    @property
    def rows(self) -> tuple[CalibrationRow, ...]:
        """One row per scalar."""
        return tuple(self._row(name, ranks) for name, ranks in self.ranks.items())

    @property
    def calibrated(self) -> bool:
        """Whether no scalar's ranks differ from uniform ones beyond their errors."""
        return not self.num_failed and all(r.finding == "calibrated" for r in self.rows)

    def summary(self) -> str:
        """The rows as text, with the verdict above them."""
        words = "calibrated" if self.calibrated else "not calibrated"
        lines = [f"{words}: {self.num_datasets} data sets, {self.num_failed} failed"]
        width = max(len(name) for name in self.ranks)
        lines.append(f"{'':<{width}}    bias  spread   50 %   90 %")
        lines += [
            f"{row.name:<{width}} {row.bias:>7.2f} {row.spread:>7.2f} "
            f"{row.coverage[0]:>6.2f} {row.coverage[1]:>6.2f}  {row.finding}"
            for row in self.rows
        ]
        return "\n".join(lines)

    def _row(self, name: str, ranks: Int[np.ndarray, " datasets"]) -> CalibrationRow:
        places = (np.asarray(ranks) + 0.5) / (self.num_draws + 1)
        bias = float(np.mean(places) - 0.5) / np.sqrt(_VARIANCE)
        spread = float(np.mean((places - 0.5) ** 2) / _VARIANCE)
        coverage = tuple(
            float(np.mean(np.abs(places - 0.5) <= level / 2)) for level in _LEVELS
        )
        bias_error, spread_error = self.errors
        errors = _ERRORS + np.sqrt(2 * np.log(2 * len(self.ranks)))
        finding = "calibrated"
        if abs(bias) > errors * bias_error:
            finding = "biased"
        elif abs(spread - 1) > errors * spread_error:
            finding = "too narrow" if spread > 1 else "too wide"
        return CalibrationRow(name, bias, spread, (coverage[0], coverage[1]), finding)
