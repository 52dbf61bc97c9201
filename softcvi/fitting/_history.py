"""The history of a run: averages over equal parts of it."""

import equinox as eqx
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float, Real


class History(eqx.Module):
    """Averages over equal parts of the run, at most 512 of them.

    The raw loss is left out on purpose: with alpha = 1 it is always log K.

    Attributes:
        step: Last step of each part.
        excess: KL between labels and predictions; falls to zero.
        label_ess: Effective number of labels, between 1 and K.
        elbo: Evidence lower bound.

    Example:
        >>> import numpy as np, softcvi
        >>> rows = np.array([1.0, 2.0])
        >>> history = softcvi.fitting.History(rows, rows, rows, rows)
        >>> history.last()["excess"]
        2.0
    """

    step: Real[np.ndarray, " rows"]
    excess: Float[np.ndarray, " rows"]
    label_ess: Float[np.ndarray, " rows"]
    elbo: Float[np.ndarray, " rows"]

    @classmethod
    def from_sums(
        cls, sums: Float[ArrayLike, "all_rows 6"], record_every: int, steps_done: int
    ) -> "History":
        """Averages from the sums that the compiled loop keeps."""
        rows = -(-steps_done // record_every)
        sums = np.asarray(sums, np.float64)[:rows]
        with np.errstate(invalid="ignore", divide="ignore"):
            means = sums[:, :3] / sums[:, 3:4]
        step = np.minimum((np.arange(rows) + 1) * record_every, steps_done)
        return cls(step, *means.T)

    def last(self, share: float = 0.1) -> dict[str, float]:
        """Averages over the last part of the run."""
        rows = max(1, int(np.ceil(share * self.step.size)))
        return {
            name: _finite_mean(getattr(self, name)[-rows:])
            for name in ("excess", "label_ess", "elbo")
        }


def _finite_mean(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(np.mean(finite)) if finite.size else float("nan")
