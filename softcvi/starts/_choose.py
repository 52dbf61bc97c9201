"""Which guides suit what a start has found, the cheapest first, and why."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray, PyTree

from softcvi._compile import as_array, rarely_run
from softcvi.guides import (
    AbstractGuide,
    MixtureGuide,
    VectorGuide,
    full_rank,
    full_rank_t,
    low_rank,
    low_rank_at,
    mean_field,
    mixed,
    spline_flow,
    student_t,
    whitened,
)
from softcvi.objectives import (
    ELBO,
    AbstractObjective,
    RandomBlocks,
    SoftCVI,
)
from softcvi.starts._base import Moments, StartReport
from softcvi.starts._explore import ascend_once
from softcvi.starts._proposal import factor_of
from softcvi.targets import AbstractTarget, Structure
from softcvi.targets._cost import affordable

_FULL_RANK_DIM = 100
_BLIND_FULL_RANK_DIM = 30
_FLOW_DIM = 64
# Most parameters for which a flow can correct a normal that is far off.
EASY_DIM = 16
# A k-hat above which a guide is far off.
FAR_OFF_KHAT = 1.0
# Coordinates that the particles of a set differ in, and sets per step.
_BLOCK, _SETS = 16, 8
_ELBO = ELBO(stick_the_landing=True)
_NORMAL_KHAT = 0.45
_NORMAL_ESS = 0.45
_NORMAL_DEPARTURE = 0.5
# Mean absolute correlation within modes that some hundred effective draws may show.
_UNCORRELATED = 0.2
# Particles of a set for each mode, and at most, where modes have all tails to learn.
_PER_MODE, _MOST_PARTICLES = 8, 64
_HEAVY_DF = 4.0
# Log densities of a fit with the default steps. If they take more operations than this,
# the weights at the start decide whether so many steps are needed.
_STEPS, _BUDGET = 160_000, 3e11


class Suggestion(eqx.Module):
    """A guide that suits what a start has found, made when it is asked for.

    Args:
        name: What it is, for people.
        reason: Why it suits, for people.
        make: Makes the guide, placed where the posterior is.
        objective: What to train it with, if not the default.
        is_flow: Whether it is a flow, which costs more than anything else.
        may_fit_already: Whether to look at its weights before it is trained: few steps
            are enough where they are even.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> report = softcvi.starts.Explore().find(jax.random.key(0), target)
        >>> softcvi.starts.suggest(jax.random.key(0), report)[0].description
        'full-rank normal: 2 parameters, close to normal'
    """

    name: str = eqx.field(static=True)
    reason: str = eqx.field(static=True)
    make: Callable[[], AbstractGuide] = eqx.field(
        static=True, converter=functools.cache
    )
    objective: AbstractObjective | None = None
    is_flow: bool = eqx.field(static=True, default=False)
    may_fit_already: bool = eqx.field(static=True, default=False)

    @property
    def guide(self) -> AbstractGuide:
        """The guide; made once."""
        return self.make()

    @property
    def description(self) -> str:
        """What it is and why, for people."""
        return f"{self.name}: {self.reason}"


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
        name = "normal, then categorical"
        return (Suggestion(name, f"{names} discrete", lambda: mixed(target)),)
    if target.amortised:
        raise ValueError(
            "guide: an amortised target needs a guide conditioned on the datum, e.g. "
            "VectorGuide(NetworkDistribution(encoder, ...), like)."
        )
    if not report.modes:
        return (_without_moments(target),)
    if len(report.modes) > 1:
        return _for_modes(key, target, report)
    return _for_one_mode(key, target, report.modes[0])


def _without_moments(target: AbstractTarget) -> Suggestion:
    size = target.structure.size
    words = f"{size} parameters"
    if size <= _BLIND_FULL_RANK_DIM:
        return Suggestion("full-rank normal", words, lambda: full_rank(target))
    if size <= 2 * _FULL_RANK_DIM:
        words = f"{size} parameters, no start"
        return Suggestion("mean-field normal", words, lambda: mean_field(target))
    return Suggestion("low-rank normal", words, lambda: low_rank(target))


def _for_modes(
    key: PRNGKeyArray, target: AbstractTarget, report: StartReport
) -> tuple[Suggestion, ...]:
    """Mixtures that begin with the weights that the evidence gives.

    Of dozens of modes each has few draws to tell its tails by, and some seem heavy by
    chance. Where most of the mass looks normal, normals are tried before t. A flow is
    the last resort: places that are bent or hang together are no mixture. Before it,
    heavy tails without correlations may be those of each parameter by itself.
    """
    modes, search = report.modes, report.search
    is_split = search is not None and search.num_places < len(modes)
    reason = "parts of what is not normal" if is_split else "separate modes"
    evidence = np.array([mode.log_evidence or 0.0 for mode in modes])
    dtype = jnp.result_type(*target.structure.dtypes)

    def suggestion(kind: str, make: Callable, **options: Any) -> Suggestion:
        def mixture() -> MixtureGuide:
            logits = as_array(evidence - np.max(evidence), dtype)
            return MixtureGuide([make(target, mode) for mode in modes], logits)

        name = f"mixture of {len(modes)} {kind}"
        return Suggestion(name, reason, mixture, **options)

    if target.structure.size > _FULL_RANK_DIM:
        whitened_normals = "whitened normals", _normal_of_many
        return (suggestion(*whitened_normals, objective=_blocked()),)
    normals = suggestion("normals", _whitened_normal, may_fit_already=True)
    students = suggestion("Student's t", _whitened_t)
    is_normal = np.array([looks_normal(mode) for mode in modes])
    if np.all(is_normal):
        return (normals,)
    mass = np.exp(evidence - np.max(evidence))
    is_mostly = mass @ is_normal > 0.5 * np.sum(mass)
    mixtures = (normals, students) if is_mostly else (students,)
    if not is_mostly and _are_uncorrelated(modes, mass):
        several = SoftCVI(min(_PER_MODE * len(modes), _MOST_PARTICLES))
        products = suggestion("products of t", _scaled_ts, objective=several)
        mixtures = *mixtures, products
    if target.structure.size > EASY_DIM:
        return mixtures
    make_flow = functools.partial(_whitened_flow, key, target, _joint(modes, mass))
    return *mixtures, Suggestion("spline flow", reason, make_flow, is_flow=True)


def _are_uncorrelated(modes: tuple[Moments, ...], mass: np.ndarray) -> bool:
    """Whether correlations within the modes are what few effective draws show."""
    size = modes[0].mean.size
    if size == 1:
        return False
    shape = [mode.dense / np.outer(mode.deviations, mode.deviations) for mode in modes]
    off = [np.mean(np.abs(matrix[~np.eye(size, dtype=bool)])) for matrix in shape]
    return bool(mass @ np.array(off) < _UNCORRELATED * np.sum(mass))


def _joint(modes: tuple[Moments, ...], mass: np.ndarray) -> Moments:
    """Mean and covariance of all modes together."""
    shares = mass / np.sum(mass)
    means = np.stack([mode.mean for mode in modes])
    mean = shares @ means
    within = np.einsum("k,kij->ij", shares, np.stack([mode.dense for mode in modes]))
    return Moments(mean, within + (means - mean).T * shares @ (means - mean))


def _for_one_mode(
    key: PRNGKeyArray, target: AbstractTarget, mode: Moments
) -> tuple[Suggestion, ...]:
    size = target.structure.size
    if size > _FULL_RANK_DIM:
        return _for_many_parameters(target, mode)
    if looks_normal(mode):
        words = f"{size} parameters, close to normal"
        make = functools.partial(_whitened_normal, target, mode)
        # Thousands of steps are not needed where a posterior of many rows is normal.
        is_costly = affordable(target, _BUDGET, fewest=0, most=_STEPS) < _STEPS
        kind = "full-rank normal"
        return (Suggestion(kind, words, make, may_fit_already=is_costly),)
    words = f"{size} parameters, not normal{_measured(mode)}"
    make = functools.partial(_whitened_t, target, mode)
    simple = Suggestion("full-rank Student's t", words, make)
    # In more dimensions chains are faster and more reliable than flows.
    if size > (EASY_DIM if target.has_gradient else _FLOW_DIM):
        return (simple,)
    words = f"the posterior is not normal{_measured(mode)}"
    make_flow = functools.partial(_whitened_flow, key, target, mode)
    return simple, Suggestion("spline flow", words, make_flow, is_flow=True)


def _for_many_parameters(
    target: AbstractTarget, mode: Moments
) -> tuple[Suggestion, ...]:
    """Mean and scales of the space that the start has whitened.

    Labels of whole particles are degenerate in so many dimensions, so the particles of
    a set differ in a block of coordinates only; and of a dense factor only the start's
    is used, as steps on all its entries make it worse.
    """
    size = target.structure.size
    make = functools.partial(_normal_of_many, target, mode)
    if mode.covariance is not None:
        words = f"{size} parameters, blocked particles"
        name = "normal whitened by the start"
        return (Suggestion(name, words, make, _blocked(), may_fit_already=True),)
    words = (
        f"{size} parameters are too many for a matrix, and for blocks: the ELBO, which "
        "moves all of them in every step"
    )
    return (Suggestion("low-rank normal", words, make, _ELBO),)


def _normal_of_many(target: AbstractTarget, mode: Moments) -> VectorGuide:
    if mode.covariance is not None:
        return _made_and_whitened(mean_field, target.structure, *_affine(target, mode))
    assert mode.scale is not None
    assert mode.factor is not None
    return low_rank_at(target.structure, mode.mean, mode.scale, mode.factor)


def _blocked() -> SoftCVI:
    return SoftCVI(blocks=RandomBlocks(_BLOCK, sets=_SETS))


def _measured(mode: Moments) -> str:
    if mode.khat is None or mode.ess_share is None or mode.departure is None:
        return ""
    return (
        f" (k-hat {mode.khat:.2f}, effective share {mode.ess_share:.2f}, "
        f"skewness or tails {mode.departure:.1f})"
    )


def looks_normal(mode: Moments) -> bool:
    """Whether a normal with these moments is close to the posterior."""
    if mode.khat is None or mode.ess_share is None or mode.departure is None:
        return False
    return (
        mode.khat < _NORMAL_KHAT
        and mode.ess_share > _NORMAL_ESS
        and mode.departure < _NORMAL_DEPARTURE
    )


def _whitened_normal(target: AbstractTarget, mode: Moments) -> VectorGuide:
    return _made_and_whitened(full_rank, target.structure, *_affine(target, mode))


def _whitened_t(target: AbstractTarget, mode: Moments) -> VectorGuide:
    return _made_and_whitened(full_rank_t, target.structure, *_affine(target, mode))


def _scaled_ts(target: AbstractTarget, mode: Moments) -> VectorGuide:
    """Independent t with degrees of freedom of their own."""
    dtype = jnp.result_type(*target.structure.dtypes)
    scales = as_array(np.diag(mode.deviations), dtype)
    mean = as_array(mode.mean, dtype)
    return _made_and_whitened(_heavy_t, target.structure, mean, scales)


def _heavy_t(structure: Structure) -> VectorGuide:
    return student_t(structure, df=_HEAVY_DF, scale=(1.0 - 2.0 / _HEAVY_DF) ** 0.5)


def _whitened_flow(
    key: PRNGKeyArray, target: AbstractTarget, mode: Moments
) -> VectorGuide:
    arguments = target.structure, *_affine(target, mode), key
    return _made_and_whitened(_flow, *arguments)


def _flow(structure: Structure, key: PRNGKeyArray) -> VectorGuide:
    return spline_flow(structure, key=key)


def _affine(target: AbstractTarget, mode: Moments) -> tuple[Array, Array]:
    dtype = jnp.result_type(*target.structure.dtypes)
    factor = factor_of(mode.dense, 0.0)
    with np.errstate(over="ignore"):  # infinite; refused where nothing can be used
        return as_array(mode.mean, dtype), as_array(factor, dtype)


# Jitted, since otherwise each operation would be compiled separately. The next fit uses
# the same program, since its static arguments compare equal.
@functools.partial(rarely_run, effort=0)
def _made_and_whitened(make, structure, mean, factor, *args) -> VectorGuide:
    return whitened(make(structure, *args), mean, factor)


STARTUP_SHARE = 0.1


def place(
    guide: AbstractGuide, mean: PyTree, covariance: PyTree
) -> AbstractGuide | None:
    """Move a guide to given moments, if its family knows how."""
    dtype = jnp.result_type(*guide.structure.dtypes)
    mean, covariance = jnp.asarray(mean, dtype), jnp.asarray(covariance, dtype)
    return guide.matched(mean, covariance)


def place_by_newton(
    key: PRNGKeyArray, guide: AbstractGuide, target: AbstractTarget, *, paths: int
) -> AbstractGuide:
    """Traceable start for many fits at once: the best of a few Newton paths."""
    dtype = jnp.result_type(*guide.structure.dtypes)
    ascend = functools.partial(ascend_once, target=target, dtype=dtype)
    normals = jax.vmap(ascend)(jax.random.split(key, paths))
    best = jnp.argmax(normals.elbo)
    placed = place(guide, normals.mean[best], normals.covariance[best])
    assert placed is not None  # the caller has asked can_be_matched
    return placed
