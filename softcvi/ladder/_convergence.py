"""Whether chains agree and have mixed: R-hat and effective sample sizes."""

import warnings

import numpy as np
from jaxtyping import Float

# In numbers of draws times scalars: larger arrays are handled piece by piece.
_PIECE = 4_000_000


def rhat_and_ess(draws: dict[str, np.ndarray]) -> tuple[float, float]:
    """Largest R-hat and smallest effective sample size over all scalars.

    Both are computed from ranks (Vehtari et al., 2021), of the draws and of their
    distance from the median, so that chains which differ in spread are noticed, and
    tails without a mean do no harm. Scalars that do not vary are left out.

    Args:
        draws: Named arrays with leading axes of chains and draws.
    """
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    rhat, ess = 1.0, np.inf
    for values in draws.values():
        values = np.asarray(values, np.float64)
        chains, length = values.shape[:2]
        values = values.reshape(chains, length, -1)
        step = max(1, _PIECE // (chains * length))
        for begin in range(0, values.shape[2], step):
            piece = values[:, :, begin : begin + step]
            varies = np.ptp(piece, axis=(0, 1)) > 0
            if not varies.any():
                continue
            piece = piece[:, :, varies]
            bulk = _normal_scores(piece)
            spread = _normal_scores(np.abs(piece - np.median(piece, axis=(0, 1))))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # chains that stand
                worst = [split_gelman_rubin(scores) for scores in (bulk, spread)]
                effective = effective_sample_size(bulk)
            # What cannot be computed (a chain that stands still) is the worst case.
            rhat = max(rhat, float(np.max(np.nan_to_num(worst, nan=np.inf))))
            ess = min(ess, float(np.min(np.nan_to_num(effective, nan=0.0))))
    return rhat, ess


def _normal_scores(
    values: Float[np.ndarray, "chains draws d"],
) -> Float[np.ndarray, "chains draws d"]:
    """Normal quantiles of the ranks over all chains."""
    from scipy.special import ndtri

    flat = values.reshape(-1, values.shape[2])
    order = np.argsort(flat, axis=0, kind="stable")
    ranks = np.empty_like(flat)
    numbers = np.broadcast_to(np.arange(1.0, len(flat) + 1)[:, None], flat.shape)
    np.put_along_axis(ranks, order, numbers, axis=0)
    return ndtri((ranks - 0.375) / (len(flat) + 0.25)).reshape(values.shape)
