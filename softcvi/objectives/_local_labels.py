"""Local labels: every group of a hierarchy is labelled from the same evaluations."""

from typing import ClassVar

import jax
import jax.numpy as jnp

from softcvi.guides import HierarchicalGuide
from softcvi.objectives._blocks import AbstractBlocks
from softcvi.objectives._contrast import StepInfo
from softcvi.objectives._particles import Particles, stopped


class LocalLabels(AbstractBlocks):
    """One set of particles for the population, and one for each group given it.

    The K particles of the first set differ in the global noise and share that of the
    groups. K more share one draw of the global sites and differ in the noise of all
    groups: given the global sites the log density is a sum over groups, so that each
    group labels its K values by its own term. A step has 2 K evaluations for any
    number of groups. The global part of the guide learns from the first set, the
    groups' parts from theirs.

    Needs a target that knows its terms (``softcvi.targets.PlateTarget``) and a
    ``softcvi.guides.HierarchicalGuide`` with the same local sites. A negative that
    looks at the values of particles (``CustomNegative``) does not split over groups.

    Example:
        >>> import softcvi
        >>> softcvi.objectives.LocalLabels().num_evaluations(8)
        16
    """

    shares_noise: ClassVar[bool] = True

    def num_evaluations(self, num_particles: int) -> int:
        return 2 * num_particles

    def draw(self, key, guide, target, proposal, num_particles, data=None):
        check_terms(guide, target)
        keys = jax.random.split(key, 4)
        num_shared = guide.num_shared_noise
        one = guide.sample_noise(keys[0])
        other = guide.sample_noise(keys[1])
        own, own_local = (
            jax.vmap(guide.sample_noise)(jax.random.split(k, num_particles))
            for k in keys[2:]
        )
        is_shared = jnp.arange(one.size) < num_shared
        noise = jnp.concatenate(
            [jnp.where(is_shared, own, one), jnp.where(is_shared, other, own_local)]
        )
        fixed = stopped(guide)
        values = jax.lax.stop_gradient(jax.vmap(fixed.from_noise)(noise))
        p_shared, p_local = jax.vmap(lambda v: target.local_terms(v, data))(values)
        q_shared, q_local = jax.vmap(guide.log_prob_terms)(values)
        # The groups learn from their own sets alone: one-hot labels of the population
        # would otherwise drive the slopes of all groups at once.
        is_group_set = jnp.arange(2 * num_particles)[:, None] >= num_particles
        q_local = jnp.where(is_group_set, q_local, jax.lax.stop_gradient(q_local))
        log_p, log_q = (
            _in_sets(shared, local, num_particles)
            for shared, local in ((p_shared, p_local), (q_shared, q_local))
        )
        return Particles(None, log_p, log_q, jax.lax.stop_gradient(log_q))

    def value(self, value, particles, starting):
        losses, infos = jax.vmap(lambda one: value(one, starting))(particles)
        loss = jnp.sum(jnp.where(infos.usable, losses, 0.0))
        return loss, StepInfo(
            excess=jnp.mean(infos.excess),
            label_ess=jnp.mean(infos.label_ess),
            # The first set alone has whole particles.
            elbo=infos.elbo[0],
            num_bad=jnp.sum(infos.num_bad),
            usable=jnp.any(infos.usable),
        )


def _in_sets(shared, local, num_particles):
    """The population's set first, then one row of K for each group."""
    whole = shared[:num_particles] + jnp.sum(local[:num_particles], axis=1)
    return jnp.concatenate([whole[None], local[num_particles:].T])


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
