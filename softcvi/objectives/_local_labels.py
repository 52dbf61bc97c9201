"""Local labels: every group of a hierarchy is labelled from the same evaluations."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from softcvi.guides import HierarchicalGuide
from softcvi.objectives._blocks import AbstractBlocks, check_count
from softcvi.objectives._contrast import StepInfo
from softcvi.objectives._particles import Particles, stopped


class LocalLabels(AbstractBlocks):
    """One set of particles for the population, and one for each group given it.

    The K particles of the first set are draws of the global sites, labelled by an
    estimate of their marginal density: each group's part is a mean over few draws
    of its local sites given the global ones, made from the same noise for all K. K
    more particles share one draw of the global sites and differ in the noise of all
    groups: given the global sites the log density is a sum over groups, so that each
    group labels its K values by its own term. The number of evaluations does not grow
    with the number of groups. The global part of the guide learns from the first set,
    the groups' parts from theirs.

    Needs a target that knows its terms (``softcvi.targets.PlateTarget``) and a
    ``softcvi.guides.HierarchicalGuide`` with the same local sites. A negative that
    looks at the values of particles (``CustomNegative``) does not split over groups.

    Args:
        local_draws: Draws of the local sites for each of the K global ones. One is an
            evidence lower bound of each group, which favours populations whose groups
            are close to normal; more tighten it.

    Example:
        >>> import softcvi
        >>> softcvi.objectives.LocalLabels(local_draws=1).num_evaluations(8)
        16
    """

    local_draws: int = eqx.field(static=True, default=4)
    shares_noise: ClassVar[bool] = True

    def __check_init__(self):
        check_count("local_draws", self.local_draws)

    def num_evaluations(self, num_particles: int) -> int:
        return (self.local_draws + 1) * num_particles

    def draw(self, key, guide, target, proposal, num_particles, data=None):
        check_terms(guide, target)
        keys = jax.random.split(key, 4)
        shared_noise = draw_noise(keys[0], guide, num_particles)
        local_noise = draw_noise(keys[1], guide, self.local_draws)
        one_population = guide.sample_noise(keys[2])
        group_noise = draw_noise(keys[3], guide, num_particles)
        is_shared = jnp.arange(one_population.size) < guide.num_shared_noise
        crossed = jnp.where(is_shared, shared_noise[:, None], local_noise)
        noise = jnp.concatenate(
            [
                crossed.reshape(-1, one_population.size),
                jnp.where(is_shared, one_population, group_noise),
            ]
        )
        values = jax.vmap(stopped(guide).from_noise)(noise)
        values = jax.lax.stop_gradient(values)
        p_shared, p_local = jax.vmap(lambda v: target.local_terms(v, data))(values)
        q_shared, q_local = jax.vmap(guide.log_prob_terms)(values)
        first = num_particles * self.local_draws
        ratio = jax.lax.stop_gradient(p_local - q_local)[:first]
        ratio = ratio.reshape(num_particles, self.local_draws, -1)
        evidence = jax.nn.logsumexp(ratio, axis=1) - jnp.log(self.local_draws)
        population = p_shared[: first : self.local_draws] + jnp.sum(evidence, axis=1)
        log_p = jnp.concatenate([population[None], p_local[first:].T])
        own = q_shared[: first : self.local_draws]
        log_q = jnp.concatenate([own[None], q_local[first:].T])
        return Particles(None, log_p, log_q, jax.lax.stop_gradient(log_q))

    def value(self, value, particles, starting):
        losses, infos = jax.vmap(lambda one: value(one, starting))(particles)
        loss = jnp.sum(jnp.where(infos.usable, losses, 0.0))
        return loss, StepInfo(
            excess=jnp.mean(infos.excess),
            label_ess=jnp.mean(infos.label_ess),
            # The first set alone is about the whole posterior.
            elbo=infos.elbo[0],
            num_bad=jnp.sum(infos.num_bad),
            num_infinite=jnp.sum(infos.num_infinite),
            usable=jnp.any(infos.usable),
        )


def draw_noise(key, guide, count: int):
    """Independent vectors of noise."""
    return jax.vmap(guide.sample_noise)(jax.random.split(key, count))


def check_terms(guide, target) -> None:
    """Guide and target must split over the same groups."""
    if not target.local_sites:
        raise ValueError(
            "blocks: LocalLabels needs the terms of the log density one by one; this "
            f"{type(target).__name__} has none. Use softcvi.targets.PlateTarget, or "
            "blocks=RandomBlocks(...)."
        )
    if not isinstance(guide, HierarchicalGuide) or set(guide.local_sites) != set(
        target.local_sites
    ):
        raise ValueError(
            "blocks: LocalLabels needs a guide that splits as the target does; use "
            f"softcvi.guides.hierarchical(target, local={target.local_sites!r})."
        )
