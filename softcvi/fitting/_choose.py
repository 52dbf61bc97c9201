"""Which guide to use when the user does not say, and why."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from softcvi.fitting._adapt import Moments
from softcvi.fitting._start import StartReport
from softcvi.guides import (
    AbstractGuide,
    VectorGuide,
    Whitened,
    full_rank,
    low_rank,
    mean_field,
    mixed,
    mixture,
    spline_flow,
)
from softcvi.targets import AbstractTarget

_FULL_RANK_DIM = 100
_BLIND_FULL_RANK_DIM = 30
_FLOW_DIM = 64
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
    looks_normal = (
        mode.khat < _NORMAL_KHAT
        and mode.ess_share > _NORMAL_ESS
        and mode.departure < _NORMAL_DEPARTURE
    )
    if not looks_normal and size <= _FLOW_DIM:
        flow = spline_flow(key, target)
        why = (
            f"(k-hat {mode.khat:.2f}, effective share {mode.ess_share:.2f}, "
            f"skewness or tails {mode.departure:.1f})"
        )
        return _behind(flow, mode), f"spline flow: the posterior is not normal {why}"
    if size <= _FULL_RANK_DIM:
        why = "close to normal" if looks_normal else "too many for a flow"
        return _whitened_normal(
            target, mode
        ), f"full-rank normal: {size} parameters, {why}"
    dtype = jnp.result_type(*target.structure.dtypes)
    guide = low_rank(target).matched(
        jnp.asarray(mode.mean, dtype), jnp.asarray(mode.covariance, dtype)
    )
    assert guide is not None  # low-rank normals know how
    return guide, f"low-rank normal: {size} parameters"


def _whitened_normal(target: AbstractTarget, mode: Moments) -> VectorGuide:
    return _behind(full_rank(target), mode)


def _behind(guide: VectorGuide, mode: Moments) -> VectorGuide:
    dtype = jnp.result_type(*guide.structure.dtypes)
    mean = jnp.asarray(mode.mean, dtype)
    chol = jnp.asarray(np.linalg.cholesky(mode.covariance), dtype)
    return VectorGuide(Whitened(guide.distribution, mean, chol), guide.structure)
