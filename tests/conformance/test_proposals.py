"""The battery of every proposal."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from scipy import stats

from softcvi import DensityTarget, SoftCVI, guides, objectives


def wide(dtype):
    return guides.mean_field({"x": jnp.zeros(2, dtype)}, scale=3.0)


CASES = {
    objectives.GuideProposal: lambda dtype: objectives.GuideProposal(),
    objectives.FixedProposal: lambda dtype: objectives.FixedProposal(wide(dtype)),
    objectives.DefensiveProposal: lambda dtype: objectives.DefensiveProposal(
        wide(dtype), share=0.25
    ),
}


def test_the_battery_knows_every_exported_proposal(exported):
    assert exported(objectives, objectives.AbstractProposal) == set(CASES)


@eqx.filter_jit
def program(proposal, guide, keys):
    unwrapped = paramax.unwrap(proposal)
    fixed = paramax.unwrap(guide)
    values = jax.vmap(lambda k: unwrapped.sample(k, fixed))(keys)
    log_q = jax.vmap(fixed.log_prob)(values)
    log_proposal = unwrapped.log_prob(values, fixed, log_q)
    target = DensityTarget(lambda t: -0.5 * jnp.sum(t["x"] ** 2), guide.structure)

    def loss(guide):
        objective = SoftCVI(proposal=unwrapped)
        return objective.loss(keys[0], paramax.unwrap(guide), target)[0]

    return values["x"], log_proposal, eqx.filter_grad(loss)(guide)


@pytest.mark.parametrize("cls", CASES, ids=lambda cls: cls.__name__)
def test_draws_and_densities_agree(cls, dtype):
    guide = guides.mean_field({"x": jnp.zeros(2, dtype)}, scale=0.5)
    keys = jax.random.split(jax.random.key(0), 4000)
    x, log_proposal, gradient = program(CASES[cls](dtype), guide, keys)

    assert x.shape == (4000, 2)
    assert x.dtype == log_proposal.dtype == dtype
    leaves = jax.tree_util.tree_leaves(gradient)
    assert all(np.all(np.isfinite(leaf)) for leaf in leaves)
    assert any(np.any(np.asarray(leaf) != 0) for leaf in leaves)
    # Importance weights of another density average to one only if draws and log
    # density of the proposal belong together.
    x = np.asarray(x, float)
    inner = stats.norm.logpdf(x, 0, 0.45).sum(axis=1)
    weights = np.exp(np.asarray(inner - log_proposal, float))
    assert abs(weights.mean() - 1) < 4 * weights.std() / np.sqrt(4000)
    share = {objectives.GuideProposal: 0.0, objectives.FixedProposal: 1.0}.get(
        cls, 0.25
    )
    variance = (1 - share) * 0.25 + share * 9.0
    assert abs(np.var(x) / variance - 1) < 0.1
