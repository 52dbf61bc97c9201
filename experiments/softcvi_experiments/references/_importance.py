"""SLCP references by importance resampling of draws from the prior.

Given the covariance (``theta[2:]``) the location's posterior is a normal cut off at
the prior's box, so only the three covariance parameters are drawn from the prior: the
location comes from that normal, and a draw outside of the box weighs nothing. The
likelihood knows ``theta[2]`` and ``theta[3]`` by their squares alone, which gives the
posterior four equal copies: sampling takes place in one of them and ends with random
signs, so the symmetry holds exactly and no draw is spent on it.
"""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi_experiments.references._convergence import split_rhat
from softcvi_experiments.references._precision import double_precision
from softcvi_experiments.references._record import Reference

_BOUND = 3.0
_CHUNK = 500_000


@dataclass(frozen=True)
class WeightedDraws:
    """Importance resampled draws and the quality of the weights behind them.

    Args:
        theta: Resampled draws.
        size: Effective sample size of the weights, ``(sum w)^2 / sum w^2``.
        largest: The largest normalised weight.

    Example:
        >>> WeightedDraws(np.zeros((3, 5)), 100.0, 0.02).size
        100.0
    """

    theta: Float[np.ndarray, "draws 5"]
    size: float
    largest: float


def resample_slcp(
    key: PRNGKeyArray,
    x: Float[np.ndarray, "4 2"],
    *,
    prior_draws: int = 10_000_000,
    num_draws: int = 10_000,
) -> WeightedDraws:
    """Draw from the SLCP posterior by importance resampling from the prior.

    Memory stays at one number per prior draw: chosen draws are made again from the key
    of their chunk.

    Args:
        key: Random key.
        x: The four observed points.
        prior_draws: Draws from the prior, rounded up to whole chunks.
        num_draws: Draws to return.

    Example:
        >>> x = np.array([[2.0, 0.5], [3.0, 1.5], [-1.0, -1.0], [-0.5, 0.0]])
        >>> resampled = resample_slcp(jr.key(0), x, prior_draws=1_000, num_draws=10)
        >>> resampled.theta.shape
        (10, 5)
    """
    chunk_key, pick_key, sign_key, order_key = jr.split(key, 4)
    num_chunks = -(-prior_draws // _CHUNK)
    size = min(_CHUNK, prior_draws)
    with double_precision():
        x = jnp.asarray(x, float)
        keys = jr.split(chunk_key, num_chunks)
        weigh = functools.partial(_prior_chunk, x=x, size=size)
        log_weights = np.concatenate([np.asarray(weigh(k)[1]) for k in keys])
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        # Systematic resampling: one uniform, the smallest variance of the counts.
        grid = (np.arange(num_draws) + float(jr.uniform(pick_key))) / num_draws
        chosen = np.searchsorted(np.cumsum(weights), grid).clip(max=len(weights) - 1)
        theta = np.concatenate(
            [
                np.asarray(weigh(keys[c])[0])[chosen[chosen // size == c] - c * size]
                for c in np.unique(chosen // size)
            ]
        )
        # Systematic picks come in the order of the prior draws; chains must not.
        theta = theta[np.asarray(jr.permutation(order_key, num_draws))]
        theta[:, 2:4] *= np.asarray(jr.rademacher(sign_key, (num_draws, 2)))
    return WeightedDraws(
        theta=theta,
        size=float(1 / np.sum(weights**2)),
        largest=float(weights.max()),
    )


@functools.partial(jax.jit, static_argnames="size")
def _prior_chunk(
    key: PRNGKeyArray, x: Float[Array, "4 2"], size: int
) -> tuple[Float[Array, "size 5"], Float[Array, " size"]]:
    root_key, correlation_key, location_key = jr.split(key, 3)
    root = _BOUND * jr.uniform(root_key, (size, 2))
    correlation_raw = _BOUND * jr.uniform(correlation_key, (size,), minval=-1, maxval=1)
    scale = root**2
    correlation = jnp.tanh(correlation_raw)
    # 1 - tanh^2 = sech^2, exact where the difference would cancel.
    rest = 1 / jnp.cosh(correlation_raw)

    mean = x.mean(axis=0)
    noise = jr.normal(location_key, (size, 2)) / jnp.sqrt(len(x))
    first = mean[0] + scale[:, 0] * noise[:, 0]
    mixed = correlation * noise[:, 0] + rest * noise[:, 1]
    second = mean[1] + scale[:, 1] * mixed

    # The likelihood with the location integrated out over the plane.
    deviation = (x - mean)[None] / scale[:, None]
    a, b = deviation[..., 0], deviation[..., 1]
    residual = (b - correlation[:, None] * a) / rest[:, None]
    log_scales = jnp.log(scale).sum(axis=1) + jnp.log(rest)
    log_weight = -0.5 * jnp.sum(a**2 + residual**2, axis=1) - (len(x) - 1) * log_scales
    inside = (jnp.abs(first) < _BOUND) & (jnp.abs(second) < _BOUND)
    theta = jnp.column_stack([first, second, root, correlation_raw])
    return theta, jnp.where(inside, log_weight, -jnp.inf)


def simulate_slcp(
    key: PRNGKeyArray,
) -> tuple[Float[np.ndarray, "4 2"], Float[np.ndarray, " 5"]]:
    """Draw parameters from the prior and four points from the model.

    Args:
        key: Random key.

    Example:
        >>> x, theta = simulate_slcp(jr.key(0))
        >>> x.shape, theta.shape
        ((4, 2), (5,))
    """
    prior_key, noise_key = jr.split(key)
    with double_precision():
        theta = _BOUND * jr.uniform(prior_key, (5,), minval=-1, maxval=1)
        noise = jr.normal(noise_key, (4, 2))
        scale, correlation = theta[2:4] ** 2, jnp.tanh(theta[4])
        second = correlation * noise[:, 0] + noise[:, 1] / jnp.cosh(theta[4])
        x = theta[:2] + scale * jnp.column_stack([noise[:, 0], second])
        return np.asarray(x), np.asarray(theta)


def sample_slcp(
    key: PRNGKeyArray,
    number: int,
    x: Float[np.ndarray, "4 2"],
    theta: Float[np.ndarray, " 5"],
    *,
    prior_draws: int = 10_000_000,
) -> Reference:
    """Make the reference of one SLCP observation.

    Args:
        key: Random key.
        number: The observation's number.
        x: The four observed points.
        theta: The parameters behind them.
        prior_draws: Draws from the prior.

    Example:
        >>> x, theta = simulate_slcp(jr.key(0))
        >>> sample_slcp(jr.key(1), 1, x, theta, prior_draws=1_000).num_draws
        10000
    """
    resampled = resample_slcp(key, x, prior_draws=prior_draws)
    chains = resampled.theta.reshape(10, -1, 5)
    return Reference(
        name=f"slcp_{number:02d}",
        draws={"theta": resampled.theta},
        observed={"x": x, "theta": theta},
        provenance={
            "source": "softcvi references build",
            "method": "importance resampling of prior draws, location conditional",
            "prior_draws": prior_draws,
            "weights_ess": resampled.size,
            "largest_weight": resampled.largest,
        },
        rhat={"theta": split_rhat(chains)},
        # Resampling cannot know more than the weights do.
        ess={"theta": np.full(5, min(resampled.size, len(resampled.theta)))},
    )
