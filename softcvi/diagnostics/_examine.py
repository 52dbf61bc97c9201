"""What can be found out about a posterior by itself, however it came about."""

import numpy as np
from jaxtyping import PRNGKeyArray

from softcvi._compile import host_key, host_split, rehearse
from softcvi.diagnostics._evidence import Evidence, WeightEvidence
from softcvi.diagnostics._fresh import fresh_importance
from softcvi.diagnostics._improper import improper_directions
from softcvi.diagnostics._precision import rounding_at
from softcvi.diagnostics._short_chains import short_chains, vectors_of
from softcvi.guides import AbstractGuide
from softcvi.posterior import ImportanceSample, Posterior
from softcvi.targets import AbstractTarget

# Draws that are enough to look along lines from.
_FEW = 1000


def prepare_examination(posterior: Posterior) -> None:
    """Begin to compile what ``examine`` will need for such a posterior.

    Args:
        posterior: One of the same shapes.
    """
    rehearse(_examined, posterior.guide, posterior.target)


def _examined(guide: AbstractGuide, target: AbstractTarget) -> None:
    examine(host_key(0), Posterior(guide, target))


def examine(
    key: PRNGKeyArray, posterior: Posterior, sample: ImportanceSample | None = None
) -> Evidence:
    """Evidence from fresh draws: weights, short chains, precision, a finite mass.

    Args:
        key: Random key, not used to choose the posterior.
        posterior: The posterior; without its target nothing can be measured.
        sample: Fresh weighted draws, where they are at hand.

    Returns:
        Evidence without the facts of a run, which ``dataclasses.replace`` can add.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> from softcvi.diagnostics import examine, judge
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
        >>> judge(examine(jax.random.key(0), posterior)).level
        'trusted'
    """
    target = posterior.target
    size = posterior.guide.structure.size
    if target is None or target.amortised:
        return Evidence(dimension=size)
    if sample is None:
        sample = fresh_importance(key, posterior)
    weights = WeightEvidence.of(sample)
    evidence = Evidence(
        has_gradient=target.has_gradient,
        has_discrete=not target.structure.is_continuous,
        dimension=size,
        weights=weights,
        model_warnings=target.model_warnings,
    )
    # Where no weight is usable there is nothing to start chains from.
    if not target.structure.is_continuous or not np.isfinite(sample.log_p).any():
        return evidence
    keys = host_split(key, 3)
    vectors = vectors_of(sample.particles, target.structure)[:_FEW]
    return Evidence(
        has_gradient=target.has_gradient,
        dimension=size,
        weights=weights,
        chains=short_chains(keys[0], posterior, sample)
        if target.has_gradient
        else None,
        precision=rounding_at(keys[1], target, vectors),
        improper=improper_directions(keys[2], target, vectors) or (),
        model_warnings=target.model_warnings,
    )
