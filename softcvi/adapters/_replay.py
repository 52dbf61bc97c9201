"""Fitting a guide to stored evaluations, each of which is used many times."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import paramax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from softcvi.guides import AbstractGuide
from softcvi.objectives import contrast
from softcvi.posterior import ImportanceSample, psis
from softcvi.posterior._importance import log_mean_weight
from softcvi.targets import AbstractSpace

# Effective points for a covariance, while the guide is on its way.
_POINTS_PER_PARAMETER = 5


class Evaluations(eqx.Module):
    """Evaluated points in a buffer of fixed size, so that one program fits all.

    Attributes:
        points: Pytree with a leading axis, points in the fitting space.
        log_p: Their log density in the fitting space.
        log_proposal: Their log density under the mixture of all past proposals.
        count: How many rows are filled.
    """

    points: PyTree
    log_p: Float[Array, " n"]
    log_proposal: Float[Array, " n"]
    count: Int[Array, ""]

    @classmethod
    def of(
        cls,
        points: PyTree,
        log_p: Float[np.ndarray, " n"],
        log_proposal: Float[np.ndarray, " n"],
        count: int,
    ) -> "Evaluations":
        """From a buffer of NumPy arrays."""
        return cls(
            points=jax.tree_util.tree_map(jnp.asarray, points),
            log_p=jnp.asarray(log_p, float),
            log_proposal=jnp.asarray(log_proposal, float),
            count=jnp.asarray(count),
        )


@eqx.filter_jit
def log_prob_rows(guide: AbstractGuide, points: PyTree) -> Float[Array, " n"]:
    """Log density of a guide at every row of the buffer."""
    return jax.vmap(paramax.unwrap(guide).log_prob)(points)


def log_mixture(
    proposals: list[AbstractGuide], counts: list[int], points: PyTree
) -> Float[np.ndarray, " n"]:
    """Log density of the mixture of all proposals, weighted by their counts."""
    rows = jax.tree_util.tree_leaves(points)[0].shape[0]
    total = np.full(rows, -np.inf)
    for guide, count in zip(proposals, counts, strict=True):
        if count:
            row = np.asarray(log_prob_rows(guide, points), np.float64)
            total = np.logaddexp(total, row + math.log(count / sum(counts)))
    return total


def weighted(
    points: PyTree,
    log_p: Float[np.ndarray, " n"],
    log_q: Float[np.ndarray, " n"],
    space: AbstractSpace,
    names: tuple[str, ...],
) -> ImportanceSample:
    """Evaluations as weighted draws in model coordinates.

    Args:
        points: The points in the fitting space.
        log_p: Their log densities there.
        log_q: Those of the mixture that they were drawn from.
        space: The way to model coordinates.
        names: Names of the leaves.
    """
    x, log_det = jax.vmap(space.to_model_and_log_det)(points)
    log_det = np.asarray(log_det, np.float64)
    draws = dict(zip(names, jax.tree_util.tree_leaves(x), strict=True))
    log_weights, khat = psis(log_p - log_q)
    evidence = log_mean_weight(log_p - log_q)
    return ImportanceSample(
        draws, log_p - log_det, log_q - log_det, log_weights, khat, evidence
    )


@eqx.filter_jit
def improve(
    key: PRNGKeyArray,
    guide: AbstractGuide,
    evaluations: Evaluations,
    *,
    steps: Int[Array, ""],
    batch: int,
    rate: Float[Array, ""],
    alpha: Float[Array, ""],
    temperature: Float[Array, ""],
) -> AbstractGuide:
    """Steps of SoftCVI on batches of stored evaluations.

    The proposal is the mixture of all guides that proposed a point. At a temperature
    above one, labels and predictions soften alike, which leaves the optimum where it is
    and lets more than a few points speak while the guide is still far away.
    """
    params, static = eqx.partition(
        guide,
        eqx.is_inexact_array,
        is_leaf=lambda leaf: isinstance(leaf, paramax.NonTrainable),
    )
    optimizer = optax.chain(optax.clip_by_global_norm(10.0), optax.scale_by_adam())

    def loss_fn(params, index):
        current = paramax.unwrap(eqx.combine(params, static))
        rows = jax.tree_util.tree_map(lambda leaf: leaf[index], evaluations.points)
        log_q = jax.vmap(current.log_prob)(rows)
        log_negative = alpha * evaluations.log_proposal[index]
        loss, info = contrast(
            evaluations.log_p[index], log_q, log_negative, temperature=temperature
        )
        return loss, info

    def step(i, carry):
        params, state = carry
        index = jax.random.randint(
            jax.random.fold_in(key, i), (batch,), 0, evaluations.count
        )
        (_, info), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, index)
        finite = [jnp.all(jnp.isfinite(g)) for g in jax.tree_util.tree_leaves(grads)]
        usable = info.usable & jnp.all(jnp.stack(finite))
        updates, new_state = optimizer.update(grads, state, params)
        # Decays to zero, so that each round ends settled on the points it has.
        size = -rate * 0.5 * (1 + jnp.cos(jnp.pi * i / steps))
        moved = jax.tree_util.tree_map(lambda p, u: p + size * u, params, updates)
        return jax.tree_util.tree_map(
            lambda new, old: jnp.where(usable, new, old),
            (moved, new_state),
            (params, state),
        )

    params, _ = jax.lax.fori_loop(0, steps, step, (params, optimizer.init(params)))
    return eqx.combine(params, static)


@eqx.filter_jit
def excess(
    guide: AbstractGuide,
    evaluations: Evaluations,
    *,
    alpha: Float[Array, ""],
    temperature: Float[Array, ""],
) -> Float[Array, ""]:
    """How far the guide's predictions are from the labels of all evaluations."""
    filled = jnp.arange(evaluations.log_p.shape[0]) < evaluations.count
    _, info = contrast(
        jnp.where(filled, evaluations.log_p, -jnp.inf),
        jnp.where(filled, log_prob_rows(guide, evaluations.points), -jnp.inf),
        alpha * evaluations.log_proposal,
        temperature=temperature,
    )
    return info.excess


def softening(log_ratio: np.ndarray, share: float) -> float:
    """Smallest temperature at which weights keep a share of effective points."""
    finite = log_ratio[np.isfinite(log_ratio)]
    if finite.size < 2:
        return 1.0
    low, high = 1.0, 1e6
    if _ess_share(finite, low) >= share:
        return low
    for _ in range(40):
        middle = np.sqrt(low * high)
        if _ess_share(finite, middle) >= share:
            high = middle
        else:
            low = middle
    return float(high)


def tempered_moments(
    log_weights: Float[np.ndarray, " n"], vectors: Float[np.ndarray, "n d"]
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]] | None:
    """Mean and covariance of weighted points, tempered until enough points count.

    Labels of a far guide belong to one point, and gradients move it by little; the
    tempered weights keep enough points for a covariance, wider than the posterior.

    Args:
        log_weights: Log density over proposal, minus infinity for no density.
        vectors: The points.

    Returns:
        The moments; None where there are too few points, or enough count as they are.
    """
    needed = _POINTS_PER_PARAMETER * (vectors.shape[1] + 1)
    usable = np.isfinite(log_weights)
    if usable.sum() < needed:
        return None
    temperature = softening(log_weights, needed / int(usable.sum()))
    if temperature <= 1.0:
        return None
    weights = np.where(usable, log_weights, -np.inf)
    weights = np.exp((weights - weights.max()) / temperature)
    weights = weights / weights.sum()
    mean = weights @ vectors
    centred = vectors - mean
    covariance = (weights[:, None] * centred).T @ centred
    return mean, covariance + 1e-6 * np.diag(np.diag(covariance) + 1e-12)


def _ess_share(log_ratio: np.ndarray, temperature: float) -> float:
    weights = np.exp((log_ratio - log_ratio.max()) / temperature)
    return float(weights.sum() ** 2 / (weights**2).sum() / weights.size)
