"""R-hat and effective sample size of chains, in NumPy alone.

They judge draws that come from any source, so they must not depend on the sampler
that made some of them.
"""

import numpy as np
from jaxtyping import Float


def split_rhat(chains: Float[np.ndarray, "chains draws *shape"]) -> np.ndarray:
    """Split R-hat (Gelman et al., Bayesian Data Analysis, 3rd edition, 11.4).

    Args:
        chains: Draws, one row per chain.

    Example:
        >>> chains = np.random.default_rng(0).normal(size=(4, 1000))
        >>> bool(abs(split_rhat(chains) - 1) < 0.01)
        True
    """
    half = chains.shape[1] // 2
    halves = np.concatenate([chains[:, :half], chains[:, half : 2 * half]])
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    return np.sqrt((half - 1) / half + between / within)


def effective_size(chains: Float[np.ndarray, "chains draws *shape"]) -> np.ndarray:
    """Effective sample size over all chains, by Geyer's initial monotone sequence.

    Args:
        chains: Draws, one row per chain.

    Example:
        >>> chains = np.random.default_rng(0).normal(size=(4, 1000))
        >>> bool(3000 < effective_size(chains) < 5200)
        True
    """
    flat = chains.reshape(*chains.shape[:2], -1)
    sizes = [_effective_size_of_one(flat[:, :, i]) for i in range(flat.shape[2])]
    return np.array(sizes).reshape(chains.shape[2:])


def _effective_size_of_one(chains: Float[np.ndarray, "chains draws"]) -> float:
    num_chains, num_draws = chains.shape
    covariance = _autocovariance(chains).mean(axis=0)
    within = covariance[0] * num_draws / (num_draws - 1)
    total = covariance[0]
    if num_chains > 1:
        total = total + chains.mean(axis=1).var(ddof=1)
    correlation = 1 - (within - covariance) / total
    correlation[0] = 1
    even = num_draws - num_draws % 2
    pairs = correlation[:even].reshape(-1, 2).sum(axis=1)
    # A pair sum below zero is noise: the sequence ends before it, and it never rises.
    ends = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: ends[0] if len(ends) else None])
    return num_chains * num_draws / max(2 * pairs.sum() - 1, 1 / num_draws)


def _autocovariance(chains: Float[np.ndarray, "chains draws"]) -> np.ndarray:
    num_draws = chains.shape[1]
    centred = chains - chains.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, n=2 * num_draws, axis=1)
    power = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)
    return power[:, :num_draws] / num_draws
