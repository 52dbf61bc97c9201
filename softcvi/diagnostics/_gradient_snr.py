"""Signal, noise and their ratio of an objective's gradient (appendix on SNR)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi.guides import AbstractGuide
from softcvi.objectives import AbstractObjective
from softcvi.targets import AbstractTarget


class GradientStatistics(eqx.Module):
    """Mean, spread and signal-to-noise ratio of a stochastic gradient.

    Attributes:
        signal: Absolute mean of each gradient element.
        noise: Standard deviation of each gradient element.
        ratio: Signal over noise.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> guide = softcvi.guides.mean_field(target)
        >>> stats = softcvi.diagnostics.gradient_snr(
        ...     jax.random.key(0), softcvi.SNISForwardKL(), guide, target, 50
        ... )
        >>> stats.ratio.distribution.loc.shape
        (2,)
    """

    signal: AbstractGuide
    noise: AbstractGuide
    ratio: AbstractGuide


def gradient_snr(
    key: PRNGKeyArray,
    objective: AbstractObjective,
    guide: AbstractGuide,
    target: AbstractTarget,
    num_gradients: int = 1000,
) -> GradientStatistics:
    """Statistics of many independent gradients at one guide.

    Args:
        key: Random key.
        objective: The objective.
        guide: Where to look.
        target: The target.
        num_gradients: Independent gradients.

    Returns:
        Guides that hold, instead of parameters, the statistic of each parameter.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> guide = softcvi.guides.mean_field(target)
        >>> stats = softcvi.diagnostics.gradient_snr(
        ...     jax.random.key(0), softcvi.SoftCVI(), guide, target, 50
        ... )
        >>> float(stats.noise.distribution.loc.max()) < 1e-5
        True
    """
    keys = jax.random.split(key, num_gradients)
    mean, sd = _moments(keys, objective, guide, target)
    signal = jax.tree_util.tree_map(jnp.abs, mean)
    ratio = jax.tree_util.tree_map(_safe_ratio, signal, sd)
    return GradientStatistics(signal, sd, ratio)


def _safe_ratio(signal: Float[Array, "..."], noise: Float[Array, "..."]) -> Array:
    return jnp.where(noise > 0, signal / jnp.where(noise > 0, noise, 1.0), 0.0)


@eqx.filter_jit
def _moments(keys, objective, guide, target):
    def gradient(key):
        def loss(guide):
            return paramax.unwrap(objective).loss(
                key, paramax.unwrap(guide), paramax.unwrap(target)
            )[0]

        return eqx.filter_grad(loss)(guide)

    gradients = jax.vmap(gradient)(keys)
    mean = jax.tree_util.tree_map(lambda g: jnp.mean(g, axis=0), gradients)
    return mean, jax.tree_util.tree_map(lambda g: jnp.std(g, axis=0), gradients)
