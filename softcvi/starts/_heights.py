"""Log densities of a search, in which rounding errors are no density."""

import dataclasses

import numpy as np
from jaxtyping import Float

from softcvi.starts._importance import LogDensity
from softcvi.targets._rounding import are_no_errors

# Only what is higher than all known places by so many nats is looked at: errors are
# huge, and nothing else is as high but a place that was not known.
_HIGHER = 1.0


@dataclasses.dataclass(eq=False)
class WithoutErrors:
    """Log densities that are minus infinity where they are high by rounding errors.

    One such point would outweigh a whole posterior.

    Attributes:
        rng: Random generator.
        log_density: The log density.
        eps: Relative rounding of the parameters.
        top: Height of the highest point that is known to be no error; nothing is
            looked at as long as there is none.
    """

    rng: np.random.Generator
    log_density: LogDensity
    eps: float
    top: float = np.inf

    def know(self, points: Float[np.ndarray, "n d"]) -> None:
        """Take note of points that are no errors.

        Args:
            points: The points.
        """
        self._raise_to(np.asarray(self.log_density(points)))

    def __call__(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        heights = np.asarray(self.log_density(x), np.float64)
        high = np.flatnonzero((heights > self.top + _HIGHER) & (heights < np.inf))
        found = self.rng, self.log_density, x[high], heights[high]
        is_height = are_no_errors(*found, self.eps)
        heights[high[~is_height]] = -np.inf
        self._raise_to(heights[high[is_height]])
        return heights

    def _raise_to(self, heights: Float[np.ndarray, " n"]) -> None:
        known = [] if self.top == np.inf else [self.top]
        self.top = max([*known, *heights[np.isfinite(heights)]], default=np.inf)
