"""Pareto smoothed importance sampling: smoothed weights and their diagnostic k-hat."""

from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Float

_MIN_TAIL = 5
# Smaller weights count as none: reciprocals of their differences overflow.
_LEAST_LOG_WEIGHT = np.log(np.finfo(np.float64).tiny) + 50.0


class ImportanceSample(eqx.Module):
    """Draws from a guide with their log densities and smoothed weights.

    Attributes:
        draws: Named arrays in model coordinates, leading axis of length n.
        log_p: Unnormalised log posterior in model coordinates.
        log_q: Log density of the guide in model coordinates.
        log_weights: Pareto smoothed log weights, normalised to sum to one.
        khat: Shape of the tail of the weights; below 0.7 they can be trusted.
        log_evidence: Estimate of the log marginal likelihood.
        particles: The draws in the fitting space, where they are known.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
        >>> sample = posterior.importance(jax.random.key(0), 1000)
        >>> round(sample.ess), round(sample.log_evidence, 4)
        (1000, 1.8379)
    """

    draws: dict[str, Any]
    log_p: Any
    log_q: Any
    log_weights: Any
    khat: float
    log_evidence: float
    particles: Any = None
    largest_khat: ClassVar[float] = 0.7
    mostly_even_share: ClassVar[float] = 0.5

    @property
    def is_usable(self) -> bool:
        """Whether the weights correct the draws rather than add noise.

        Where most draws carry weight, no single one dominates, whatever the shape of
        the tail; leaving the weights out would put back what they remove, such as the
        tail of a normal guide that an exponential makes enormous.
        """
        is_even = self.ess >= self.mostly_even_share * len(self.log_weights)
        return bool(
            np.isfinite(self.khat) and (self.khat <= self.largest_khat or is_even)
        )

    @property
    def ess(self) -> float:
        """Effective sample size of the weights."""
        return float(1.0 / np.sum(np.exp(2 * self.log_weights)))


def psis(log_ratios: Float[np.ndarray, " n"]) -> tuple[Float[np.ndarray, " n"], float]:
    """Smooth importance weights by a Pareto fit to their tail (Vehtari et al.).

    Args:
        log_ratios: ``log p - log q`` at draws from q. NaN counts as no weight.

    Returns:
        Normalised smoothed log weights, and k-hat: infinity if all ratios are bad, too
        few to say, or so far apart that a few draws carry everything; minus infinity
        if all large ratios are equal.

    Example:
        >>> import numpy as np
        >>> from softcvi.diagnostics import psis
        >>> rng = np.random.default_rng(0)
        >>> _, khat = psis(0.1 * rng.normal(size=4000))
        >>> bool(khat < 0.5)
        True
    """
    log_ratios = np.asarray(log_ratios, np.float64)
    log_ratios = np.where(np.isnan(log_ratios), -np.inf, log_ratios)
    n = log_ratios.size
    top = np.max(log_ratios, initial=-np.inf)
    if not np.isfinite(top):
        return np.full(n, -np.log(max(n, 1))), np.inf
    log_weights = log_ratios - top
    tail = int(np.ceil(min(0.2 * n, 3.0 * np.sqrt(n))))
    khat = np.inf
    if tail >= _MIN_TAIL:
        order = np.argsort(log_weights)
        tail_index = order[-tail:]
        cutoff = max(log_weights[order[-tail - 1]], _LEAST_LOG_WEIGHT)
        in_tail = tail_index[log_weights[tail_index] > cutoff]
        if in_tail.size >= _MIN_TAIL:
            exceedances = np.exp(log_weights[in_tail]) - np.exp(cutoff)
            khat, sigma = _fit_generalised_pareto(exceedances)
            if np.isfinite(khat):
                ranks = (np.arange(in_tail.size) + 0.5) / in_tail.size
                smooth = _pareto_quantile(ranks, khat, sigma) + np.exp(cutoff)
                log_weights[in_tail] = np.minimum(np.log(smooth), 0.0)
        else:
            khat = _without_a_tail(log_weights, tail)
    return log_weights - _logsumexp(log_weights), float(khat)


def _without_a_tail(log_weights: np.ndarray, tail: int) -> float:
    """k-hat where too few ratios are distinct or above zero for a Pareto fit.

    Equal large ratios have no tail, which is best. Ratios so far apart that all but a
    few underflow are the worst: those few draws carry everything.
    """
    weights = np.exp(log_weights)
    ess = np.sum(weights) ** 2 / np.sum(weights**2)
    return -np.inf if ess > tail else np.inf


def _fit_generalised_pareto(exceedances: np.ndarray) -> tuple[float, float]:
    """Zhang and Stephens' estimate, with the weak prior on k of PSIS."""
    x = np.sort(exceedances)
    n = x.size
    grid = 30 + int(np.sqrt(n))
    b = 1 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))
    b = b / (3 * x[int(n / 4 + 0.5) - 1]) + 1 / x[-1]
    k = np.mean(np.log1p(-b[:, None] * x), axis=1)
    # k is zero, and nothing is learnt, where b is: equal exceedances come to that.
    b, k = b[k != 0], k[k != 0]
    log_likelihood = n * (np.log(-(b / k)) - k - 1)
    weights = np.exp(log_likelihood - _logsumexp(log_likelihood))
    keep = weights >= 10 * np.finfo(np.float64).eps
    weights, b = weights[keep] / np.sum(weights[keep]), b[keep]
    b_mean = np.sum(b * weights)
    k_mean = np.mean(np.log1p(-b_mean * x))
    sigma = -k_mean / b_mean
    shrunk = (n * k_mean + 5.0) / (n + 10.0)
    return float(shrunk), float(sigma)


def _pareto_quantile(p: np.ndarray, k: float, sigma: float) -> np.ndarray:
    if abs(k) < 1e-12:
        return -sigma * np.log1p(-p)
    with np.errstate(over="ignore"):  # infinite for a very heavy tail
        return sigma * np.expm1(-k * np.log1p(-p)) / k


def _logsumexp(x: np.ndarray) -> float:
    top = np.max(x)
    return float(top + np.log(np.sum(np.exp(x - top))))


def log_mean_weight(log_ratios: np.ndarray) -> float:
    """Log of the mean importance ratio: the evidence."""
    finite = np.where(np.isfinite(log_ratios), log_ratios, -np.inf)
    if not np.any(np.isfinite(finite)):
        return -np.inf
    return _logsumexp(finite) - float(np.log(finite.size))


def resample_index(
    rng: np.random.Generator, log_weights: np.ndarray, n: int
) -> np.ndarray:
    """Indices of n draws taken by systematic resampling, in random order."""
    cumulative = np.cumsum(np.exp(log_weights))
    points = (rng.uniform() + np.arange(n)) / n * cumulative[-1]
    index = np.searchsorted(cumulative, points)
    return rng.permutation(np.minimum(index, log_weights.size - 1))
