"""Which guides suit what a start has found, the cheapest first, and why."""

import functools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from softcvi._compile import rarely_run
from softcvi.guides import (
    AbstractGuide,
    LowRankNormal,
    MixtureGuide,
    VectorGuide,
    full_rank,
    full_rank_t,
    low_rank,
    mean_field,
    mixed,
    spline_flow,
    whitened,
)
from softcvi.objectives import AbstractObjective, RandomBlocks, SoftCVI
from softcvi.starts._base import Moments, StartReport
from softcvi.targets import AbstractTarget

_FULL_RANK_DIM = 100
_BLIND_FULL_RANK_DIM = 30
_FLOW_DIM = 64
# Up to so many parameters a flow can mend a normal that is far off.
EASY_DIM = 16
# A k-hat above which a guide is far off.
FAR_OFF_KHAT = 1.0
# Coordinates that the particles of a set differ in, and sets per step.
_BLOCK = 16
_SETS = 8
_NORMAL_KHAT = 0.45
_NORMAL_ESS = 0.45
_NORMAL_DEPARTURE = 0.5


class Suggestion(eqx.Module):
    """A guide that suits what a start has found.

    Attributes:
        guide: The guide, placed where the posterior is.
        description: What it is and why, for people.
        objective: What to train it with, if not the default.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> report = softcvi.starts.Explore().find(jax.random.key(0), target)
        >>> softcvi.starts.suggest(jax.random.key(0), report)[0].description
        'full-rank normal: 2 parameters, close to normal'
    """

    guide: AbstractGuide
    description: str = eqx.field(static=True)
    objective: AbstractObjective | None = None


def suggest(key: PRNGKeyArray, report: StartReport) -> tuple[Suggestion, ...]:
    """Guides for a target of this size and what the start revealed.

    Args:
        key: Random key, for guides that begin with random weights.
        report: What a start found.

    Returns:
        At least one suggestion, the cheapest first.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> report = softcvi.starts.Explore().find(jax.random.key(0), target)
        >>> len(softcvi.starts.suggest(jax.random.key(0), report))
        1
    """
    target = report.target
    if target.structure.discrete_names:
        names = ", ".join(target.structure.discrete_names)
        words = f"normal, then categorical: {names} discrete"
        return (Suggestion(mixed(target), words),)
    if target.amortised:
        raise ValueError(
            "guide: an amortised target needs a guide conditioned on the datum, e.g. "
            "VectorGuide(NetworkDistribution(encoder, ...), like)."
        )
    if not report.modes:
        return (_without_moments(target),)
    if len(report.modes) > 1:
        return (_for_modes(target, report.modes),)
    return _for_one_mode(key, target, report.modes[0])


def _without_moments(target: AbstractTarget) -> Suggestion:
    size = target.structure.size
    if size <= _BLIND_FULL_RANK_DIM:
        return Suggestion(full_rank(target), f"full-rank normal: {size} parameters")
    if size <= 2 * _FULL_RANK_DIM:
        words = f"mean-field normal: {size} parameters, no start"
        return Suggestion(mean_field(target), words)
    return Suggestion(low_rank(target), f"low-rank normal: {size} parameters")


def _for_modes(target: AbstractTarget, modes: tuple[Moments, ...]) -> Suggestion:
    """A mixture that begins with the weights that the evidence gives."""
    size = target.structure.size
    if size > _FULL_RANK_DIM:
        parts = [_for_many_parameters(target, mode) for mode in modes]
        guides, objective = [part.guide for part in parts], parts[0].objective
        words = f"mixture of {len(modes)} whitened normals: separate modes"
    else:
        is_normal = all(_looks_normal(mode) for mode in modes)
        make = _whitened_normal if is_normal else _whitened_t
        guides, objective = [make(target, mode) for mode in modes], None
        kind = "normals" if is_normal else "Student's t"
        words = f"mixture of {len(modes)} {kind}: separate modes"
    evidence = np.array([mode.log_evidence or 0.0 for mode in modes])
    dtype = jnp.result_type(*target.structure.dtypes)
    logits = jnp.asarray(evidence - np.max(evidence), dtype)
    return Suggestion(MixtureGuide(guides, logits), words, objective)


def _for_one_mode(
    key: PRNGKeyArray, target: AbstractTarget, mode: Moments
) -> tuple[Suggestion, ...]:
    size = target.structure.size
    if size > _FULL_RANK_DIM:
        return (_for_many_parameters(target, mode),)
    if _looks_normal(mode):
        words = f"full-rank normal: {size} parameters, close to normal"
        return (Suggestion(_whitened_normal(target, mode), words),)
    words = f"full-rank Student's t: {size} parameters, not normal"
    simple = Suggestion(_whitened_t(target, mode), words + _measured(mode))
    # Where even a t is far off, labels are degenerate and many dimensions stay so.
    is_far_off = mode.khat is None or mode.khat > FAR_OFF_KHAT
    if size > _FLOW_DIM or (size > EASY_DIM and is_far_off):
        return (simple,)
    flow = _whitened_flow(key, target, mode)
    words = "spline flow: the posterior is not normal"
    return simple, Suggestion(flow, words + _measured(mode))


def _for_many_parameters(target: AbstractTarget, mode: Moments) -> Suggestion:
    """Mean and scales of the space that the start has whitened.

    Labels of whole particles are degenerate in so many dimensions, so the particles of
    a set differ in a block of coordinates only; and of a dense factor only the start's
    is used, as steps on all its entries make it worse.
    """
    size = target.structure.size
    dtype = jnp.result_type(*target.structure.dtypes)
    objective = SoftCVI(blocks=RandomBlocks(_BLOCK, sets=_SETS))
    if mode.covariance is not None:
        guide = _made_and_whitened(
            functools.partial(mean_field, target.like), *_affine(target, mode)
        )
        words = f"normal whitened by the start: {size} parameters, blocked particles"
        return Suggestion(guide, words, objective)
    assert mode.scale is not None
    assert mode.factor is not None
    parts = [jnp.asarray(leaf, dtype) for leaf in (mode.mean, mode.scale, mode.factor)]
    words = f"low-rank normal: {size} parameters are too many for a matrix"
    guide = VectorGuide(LowRankNormal(*parts), target.like)
    return Suggestion(guide, words, objective)


def _measured(mode: Moments) -> str:
    if mode.khat is None or mode.ess_share is None or mode.departure is None:
        return ""
    return (
        f" (k-hat {mode.khat:.2f}, effective share {mode.ess_share:.2f}, "
        f"skewness or tails {mode.departure:.1f})"
    )


def _looks_normal(mode: Moments) -> bool:
    if mode.khat is None or mode.ess_share is None or mode.departure is None:
        return False
    return (
        mode.khat < _NORMAL_KHAT
        and mode.ess_share > _NORMAL_ESS
        and mode.departure < _NORMAL_DEPARTURE
    )


def _whitened_normal(target: AbstractTarget, mode: Moments) -> VectorGuide:
    return _made_and_whitened(
        functools.partial(full_rank, target.like), *_affine(target, mode)
    )


def _whitened_t(target: AbstractTarget, mode: Moments) -> VectorGuide:
    make = functools.partial(full_rank_t, target.like)
    return _made_and_whitened(make, *_affine(target, mode))


def _whitened_flow(
    key: PRNGKeyArray, target: AbstractTarget, mode: Moments
) -> VectorGuide:
    def make(key: PRNGKeyArray) -> VectorGuide:
        return spline_flow(target.like, key=key)

    return _made_and_whitened(make, *_affine(target, mode), key)


def _affine(target: AbstractTarget, mode: Moments) -> tuple[Array, Array]:
    dtype = jnp.result_type(*target.structure.dtypes)
    factor = np.linalg.cholesky(mode.dense)
    return jnp.asarray(mode.mean, dtype), jnp.asarray(factor, dtype)


# One program, where each operation by itself would be compiled as one.
@functools.partial(rarely_run, effort=0)
def _made_and_whitened(make, mean, factor, *args) -> VectorGuide:
    return whitened(make(*args), mean, factor)
