"""Which guide to use when the user does not say, and why."""

import functools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from softcvi._compile import rarely_run
from softcvi.guides import (
    AbstractGuide,
    VectorGuide,
    full_rank,
    full_rank_t,
    low_rank,
    mean_field,
    mixed,
    mixture,
    spline_flow,
    whitened,
)
from softcvi.starts._explore import StartReport
from softcvi.starts._importance import Moments
from softcvi.targets import AbstractTarget

_FULL_RANK_DIM = 100
_BLIND_FULL_RANK_DIM = 30
_FLOW_DIM = 64
EASY_DIM = 16
HOPELESS = 1.0
_NORMAL_KHAT = 0.45
_NORMAL_ESS = 0.45
_NORMAL_DEPARTURE = 0.5


def choose_guide(
    key: PRNGKeyArray, target: AbstractTarget, report: StartReport
) -> tuple[AbstractGuide, str]:
    """A guide for a target of this size and what the start revealed."""
    if target.structure.discrete_names:
        names = ", ".join(target.structure.discrete_names)
        return mixed(target), f"normal, then categorical: {names} discrete"
    if target.amortised:
        raise ValueError(
            "guide: an amortised target needs a guide conditioned on the datum, e.g. "
            "VectorGuide(NetworkDistribution(encoder, ...), like)."
        )
    size = target.structure.size
    if not report.modes:
        if size <= _BLIND_FULL_RANK_DIM:
            return full_rank(target), f"full-rank normal: {size} parameters"
        if size <= 2 * _FULL_RANK_DIM:
            return mean_field(target), f"mean-field normal: {size} parameters, no start"
        return low_rank(target), f"low-rank normal: {size} parameters"
    if len(report.modes) > 1:
        parts = [_whitened_normal(target, mode) for mode in report.modes]
        return mixture(parts), f"mixture of {len(parts)} normals: separate modes"
    mode = report.modes[0]
    looks_normal = _looks_normal(mode)
    # Where even a t is far off, labels are degenerate and many dimensions stay so.
    hopeless = size > EASY_DIM and mode.khat > HOPELESS
    if not looks_normal and not hopeless and size <= _FLOW_DIM:
        why = (
            f"(k-hat {mode.khat:.2f}, effective share {mode.ess_share:.2f}, "
            f"skewness or tails {mode.departure:.1f})"
        )
        flow = _whitened_flow(key, target, mode)
        return flow, f"spline flow: the posterior is not normal {why}"
    if looks_normal and size <= _FULL_RANK_DIM:
        why = f"full-rank normal: {size} parameters, close to normal"
        return _whitened_normal(target, mode), why
    if size <= _FULL_RANK_DIM:
        why = f"full-rank Student's t: {size} parameters, not normal (k-hat "
        why += f"{mode.khat:.2f}), and too many for a flow"
        return _whitened_t(target, mode), why
    dtype = jnp.result_type(*target.structure.dtypes)
    guide = low_rank(target).matched(
        jnp.asarray(mode.mean, dtype), jnp.asarray(mode.covariance, dtype)
    )
    assert guide is not None  # low-rank normals know how
    return guide, f"low-rank normal: {size} parameters"


def simplest_guide(
    key: PRNGKeyArray, target: AbstractTarget, report: StartReport
) -> tuple[AbstractGuide, str]:
    """The guide that is cheapest to fit to what the start revealed, good or bad.

    A t where the posterior is not quite normal: weights then correct it.
    """
    if len(report.modes) != 1 or target.structure.size > _FULL_RANK_DIM:
        return choose_guide(key, target, report)
    mode = report.modes[0]
    if _looks_normal(mode):
        return _whitened_normal(target, mode), "full-rank normal"
    return _whitened_t(target, mode), "full-rank Student's t"


def _looks_normal(mode: Moments) -> bool:
    return (
        mode.khat < _NORMAL_KHAT
        and mode.ess_share > _NORMAL_ESS
        and mode.departure < _NORMAL_DEPARTURE
    )


def _whitened_normal(target: AbstractTarget, mode: Moments) -> VectorGuide:
    return _made_behind(
        functools.partial(full_rank, target.like), *_affine(target, mode)
    )


def _whitened_t(target: AbstractTarget, mode: Moments) -> VectorGuide:
    make = functools.partial(full_rank_t, target.like)
    return _made_behind(make, *_affine(target, mode))


def _whitened_flow(
    key: PRNGKeyArray, target: AbstractTarget, mode: Moments
) -> VectorGuide:
    make = functools.partial(spline_flow, target=target.like)
    return _made_behind(make, *_affine(target, mode), key)


def _affine(target: AbstractTarget, mode: Moments) -> tuple[Array, Array]:
    dtype = jnp.result_type(*target.structure.dtypes)
    factor = np.linalg.cholesky(mode.covariance)
    return jnp.asarray(mode.mean, dtype), jnp.asarray(factor, dtype)


# One program, where each operation by itself would be compiled as one.
@functools.partial(rarely_run, effort=0)
def _made_behind(make, mean, factor, *args) -> VectorGuide:
    return whitened(make(*args), mean, factor)
