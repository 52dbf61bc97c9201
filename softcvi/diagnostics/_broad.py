"""Moments from draws that are wider than the answer, to compare the answer with."""

import equinox as eqx
import numpy as np
from jaxtyping import Float

# A standard deviation counts as known up to this relative error.
_KNOWN = 0.2
# Standard errors that are subtracted from a difference: of the broad draws, and fewer
# of the answer, since an answer with a large error of its own is doubtful. Fewer, too,
# of standard deviations: where a small share of the mass decides them, broad draws have
# met it seldom, and the answer may not have met it at all.
_ERRORS_OF_MEANS, _ERRORS_OF_SPREADS = 2.0, 1.0
_OWN_ERRORS = 0.5
# Effective draws needed to estimate a standard error.
_ENOUGH = 200
# Effective draws beyond which broad draws reach no further.
_FURTHEST = 3


class BroadCheck(eqx.Module):
    """How an answer differs from what broad weighted draws say, beyond errors.

    Attributes:
        shift: Largest difference of a mean, in standard deviations.
        spread: Ratio of a standard deviation of the answer to that of the broad
            draws, the one furthest from 1.

    Example:
        >>> from softcvi.diagnostics import BroadCheck, Evidence, judge
        >>> judge(Evidence(broad=BroadCheck(shift=0.0, spread=0.4))).trusted
        False
    """

    shift: float
    spread: float


class BroadMoments(eqx.Module):
    """Means and standard deviations of the posterior, from broad weighted draws.

    The draws are up to twenty times wider than all places that a search has found, so
    that they meet a small share of the mass far out which no draw of an answer meets.

    Attributes:
        means: Mean of each parameter in the fitting space.
        deviations: Standard deviations.
        errors: Relative standard errors of the deviations.
        reach: Lowest and highest values that enough draws go to; None for no limit.

    Example:
        >>> import numpy as np
        >>> from softcvi.diagnostics import BroadMoments
        >>> broad = BroadMoments.of(np.random.default_rng(0).normal(size=(4000, 2)))
        >>> bool(np.all(broad.errors < 0.05))
        True
    """

    means: Float[np.ndarray, " d"]
    deviations: Float[np.ndarray, " d"]
    errors: Float[np.ndarray, " d"]
    reach: Float[np.ndarray, "2 d"] | None = None

    @classmethod
    def of(
        cls,
        draws: Float[np.ndarray, "n d"],
        weights: Float[np.ndarray, " n"] | None = None,
        *,
        beside: "BroadMoments | None" = None,
    ) -> "BroadMoments":
        """Read the moments of weighted draws.

        Args:
            draws: The draws.
            weights: Their weights; equal ones by default.
            beside: Broad draws that these are an answer to be compared with. What lies
                beyond their reach makes no standard deviation larger than theirs: with
                many parameters they do not follow a long tail, and know nothing of
                its length.
        """
        weights = np.ones(len(draws)) if weights is None else weights
        weights = weights / np.sum(weights)
        means = weights @ draws
        squares = (draws - means) ** 2
        variances = weights @ squares
        errors = np.sqrt(weights**2 @ (squares - variances) ** 2)
        safe = np.maximum(variances, np.finfo(float).tiny)
        # With a few large weights the error cannot be estimated.
        is_enough = 1 / np.sum(weights**2) >= _ENOUGH
        relative = 0.5 * errors / safe if is_enough else np.full(len(means), np.inf)
        deviations = np.sqrt(variances)
        if beside is not None and beside.reach is not None:
            within = np.clip(draws, *beside.reach)
            within = np.sqrt(weights @ (within - weights @ within) ** 2)
            theirs = np.minimum(beside.deviations, deviations)
            deviations = np.maximum(within, theirs)
        return cls(means, deviations, relative, _reach(draws, weights))

    def compared(self, answer: "BroadMoments") -> BroadCheck | None:
        """What an answer differs by; None where no standard deviation is known.

        Args:
            answer: Moments of the answer's draws.
        """
        is_known = (self.errors < _KNOWN) & (self.deviations > 0)
        is_known &= answer.deviations > 0
        if not np.any(is_known):
            return None
        broad, own = self.errors[is_known], _OWN_ERRORS * answer.errors[is_known]
        ratio = np.log(answer.deviations / self.deviations)[is_known]
        left = np.abs(ratio) - _ERRORS_OF_SPREADS * broad - own
        ratio = np.sign(ratio) * np.maximum(left, 0.0)
        shift = np.abs(answer.means - self.means) / self.deviations
        # Means are known about as well as standard deviations, or better.
        error = _ERRORS_OF_MEANS * broad + own
        shift = np.maximum(shift[is_known] - error, 0.0)
        spread = float(np.exp(ratio[np.argmax(np.abs(ratio))]))
        return BroadCheck(float(np.max(shift)), spread)


def _reach(
    draws: Float[np.ndarray, "n d"], weights: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "2 d"]:
    """Quantiles that a few effective draws lie beyond."""
    share = min(_FURTHEST * float(np.sum(weights**2)), 0.5)
    order = np.argsort(draws, axis=0)
    below = np.cumsum(weights[order], axis=0)
    last = len(draws) - 1
    ends = [
        np.minimum(np.sum(below < level, axis=0), last) for level in (share, 1 - share)
    ]
    values = np.take_along_axis(draws, order, axis=0)
    return np.stack([np.take_along_axis(values, end[None], 0)[0] for end in ends])
