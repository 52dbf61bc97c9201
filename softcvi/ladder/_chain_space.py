"""Where chains run: the space whitened by a guide or by what the start found."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi.guides import (
    AbstractGuide,
    DiagonalNormal,
    VectorGuide,
    mean_field,
    whitened,
)
from softcvi.ladder._base import LadderState
from softcvi.starts import Moments
from softcvi.starts._choose import EASY_DIM, FAR_OFF_KHAT
from softcvi.starts._proposal import factor_of
from softcvi.targets import AbstractTarget

_LEAST_CHAINS, _MOST_CHAINS = 4, 16
# Chains begin at twice the posterior's spread, so that R-hat detects a lack of
# convergence.
_DISPERSION = 2.0
_MAX_DENSE_DIM = 2000
_MOMENT_DRAWS = 4096
_HALVINGS = 12


class ChainSpace(eqx.Module):
    """A guide whose base space the chains move in, and where they begin there.

    Attributes:
        guide: Maps the base space to particles.
        centres: Points of the base space, one per chain: modes, or the origin.
        starts: Dispersed points around them.
    """

    guide: AbstractGuide
    centres: Float[Array, "chains d"]
    starts: Float[Array, "chains d"]


def chain_space(state: LadderState) -> ChainSpace | None:
    """The space that suits chains best, or None if there is none."""
    target = state.target
    if not (target.has_gradient and target.structure.is_continuous):
        return None
    fits = [f for f in state.fits if f.posterior.guide.has_base]
    best = max(fits, key=lambda fit: fit.rank, default=None)
    modes = state.report.modes
    if best is not None and len(modes) < 2 and best.khat <= FAR_OFF_KHAT:
        guide = best.posterior.guide
        # Each step of a chain through a flow costs a pass for every dimension.
        is_quick = not guide.is_flow or target.structure.size <= EASY_DIM
        if is_quick:
            return _around_origin(state.key, guide, target)
    # A guide that is far off distorts the space; the start's moments do not.
    if modes:
        return _through_moments(state.key, modes, target)
    if best is not None:
        return _around_origin(state.key, best.posterior.guide, target)
    any_fit = state.best_fit
    if any_fit is None:
        return None
    moments = _moments_of(any_fit.posterior.guide, target)
    return _through_moments(state.key, (moments,), target)


def _around_origin(
    key: PRNGKeyArray, guide: AbstractGuide, target: AbstractTarget
) -> ChainSpace:
    keys = jax.random.split(key, _LEAST_CHAINS)
    starts = _DISPERSION * jax.vmap(guide.sample_base)(keys)
    return _inside(ChainSpace(guide, jnp.zeros_like(starts), starts), target)


def _through_moments(
    key: PRNGKeyArray, modes: tuple[Moments, ...], target: AbstractTarget
) -> ChainSpace:
    """An affine space with the moments of all modes together; chains begin in each."""
    size, dtype = target.structure.size, jnp.result_type(*target.structure.dtypes)
    chains = int(np.clip(len(modes), _LEAST_CHAINS, _MOST_CHAINS))
    taken = [modes[i % len(modes)] for i in range(chains)]
    means = np.stack([mode.mean for mode in taken])
    noise = np.asarray(jax.random.normal(key, (chains, size)), np.float64)
    distinct = modes[:chains]
    mean = np.mean([mode.mean for mode in distinct], axis=0)
    if size > _MAX_DENSE_DIM and modes[0].covariance is None:
        spread = np.var([mode.mean for mode in distinct], axis=0)
        within = np.mean([mode.deviations**2 for mode in distinct], axis=0)
        scale = np.sqrt(within + spread)
        guide = VectorGuide(
            DiagonalNormal(jnp.asarray(mean, dtype), jnp.asarray(scale, dtype)),
            target.structure,
        )
        points = means + _DISPERSION * noise * np.stack([m.deviations for m in taken])
        centres, starts = (means - mean) / scale, (points - mean) / scale
    else:
        offsets = np.stack([mode.mean - mean for mode in distinct])
        covariance = np.mean([mode.dense for mode in distinct], axis=0)
        factor = factor_of(covariance + offsets.T @ offsets / len(distinct), 0.0)
        guide = whitened(
            mean_field(target),
            jnp.asarray(mean, dtype),
            jnp.asarray(factor, dtype),
        )
        steps = [
            factor_of(mode.dense, 0.0) @ z for mode, z in zip(taken, noise, strict=True)
        ]
        points = means + _DISPERSION * np.stack(steps)
        centres = np.linalg.solve(factor, (means - mean).T).T
        starts = np.linalg.solve(factor, (points - mean).T).T
    space = ChainSpace(guide, jnp.asarray(centres, dtype), jnp.asarray(starts, dtype))
    return _inside(space, target)


def _moments_of(guide: AbstractGuide, target: AbstractTarget) -> Moments:
    """Moments of a guide without a base space, from its draws."""
    keys = jax.random.split(jax.random.key(0), _MOMENT_DRAWS)
    draws = jax.vmap(lambda key: target.structure.ravel(guide.sample(key)))(keys)
    draws = np.asarray(draws, np.float64)
    size = draws.shape[1]
    mean, deviations = draws.mean(axis=0), draws.std(axis=0)
    if size > _MOMENT_DRAWS // 8:  # too few draws for a covariance matrix
        return Moments(mean, scale=deviations, factor=np.zeros((size, 0)))
    covariance = np.cov(draws.T).reshape(size, size)
    return Moments(mean, covariance + 1e-9 * np.diag(np.diagonal(covariance)))


def _inside(space: ChainSpace, target: AbstractTarget) -> ChainSpace:
    """The same with starts moved towards the centre until their density is finite."""
    starts = space.starts
    for _ in range(_HALVINGS):
        values = np.asarray(_log_densities(starts, space.guide, target))
        bad = ~np.isfinite(values)
        if not bad.any():
            break
        halfway = 0.5 * (starts + space.centres)
        starts = jnp.where(jnp.asarray(bad)[:, None], halfway, starts)
    return ChainSpace(space.guide, space.centres, starts)


@eqx.filter_jit
def _log_densities(z, guide, target):
    def one(z):
        particle, log_det = guide.from_base(z)
        return target.log_density(particle) + log_det

    return jax.vmap(one)(z)
