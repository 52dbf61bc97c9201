"""The last rung of the ladder: NUTS in the base space of a fitted guide."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Array, PRNGKeyArray

from softcvi.diagnostics import Evidence, SamplerEvidence, Verdict, judge
from softcvi.posterior import Posterior


class ChainDraws(eqx.Module):
    """Draws of a Markov chain, with what says whether they can be trusted.

    Attributes:
        draws: Named arrays in model coordinates, chains joined.
        rhat: Largest split R-hat over all scalars.
        ess: Smallest effective sample size over all scalars.
        divergences: Number of divergent transitions.

    Example:
        >>> from softcvi.ladder import ChainDraws
        >>> ChainDraws({}, rhat=1.2, ess=80.0, divergences=3).trusted
        False
    """

    draws: dict[str, Array]
    rhat: float
    ess: float
    divergences: int

    @property
    def evidence(self) -> SamplerEvidence:
        """What the verdict on these draws is made from."""
        lengths = [len(values) for values in self.draws.values()]
        return SamplerEvidence(
            self.rhat, self.ess, self.divergences, max(lengths, default=1)
        )

    @property
    def verdict(self) -> Verdict:
        """Whether the chains agree, have mixed, and seldom diverged."""
        return judge(Evidence(sampler=self.evidence))

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the draws."""
        return self.verdict.trusted

    def is_better_than(self, other: "ChainDraws") -> bool:
        """Whether to keep these draws rather than others."""
        return (self.trusted, self.ess) > (other.trusted, other.ess)

    def __str__(self) -> str:
        return str(self.verdict)


def nuts_in_base_space(
    key: PRNGKeyArray,
    posterior: Posterior,
    *,
    acceptance: float = 0.85,
    depth: int = 8,
    warmup: int = 500,
    chains: int = 4,
    draws: int = 1000,
) -> ChainDraws:
    """Run NumPyro's NUTS on the posterior seen through a fitted guide.

    Where the guide is good the base space is close to a standard normal, which is as
    easy as a target can be; where it is not, NUTS corrects it.
    """
    try:
        from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
        from numpyro.infer import MCMC, NUTS
    except ImportError as error:
        raise ImportError(
            "fit_until: the last rung needs NumPyro; pip install softcvi[numpyro]."
        ) from error
    guide, target = paramax.unwrap(posterior.guide), posterior.target
    assert target is not None  # the caller has asked has_base_space

    def potential(z):
        particle, log_det = guide.from_base(z)
        return -(target.log_density(particle) + log_det)

    start_key, run_key = jax.random.split(key)
    dtype = jnp.result_type(*target.structure.dtypes)
    start = jax.random.normal(start_key, (chains, target.structure.size), dtype)
    kernel = NUTS(
        potential_fn=potential, max_tree_depth=depth, target_accept_prob=acceptance
    )
    sampler = MCMC(
        kernel,
        num_warmup=warmup,
        num_samples=draws,
        num_chains=chains,
        chain_method="vectorized",
        progress_bar=False,
    )
    # NumPyro reads one key per chain itself from a raw key.
    sampler.run(
        jax.random.key_data(run_key),
        init_params=0.5 * start,
        extra_fields=("diverging",),
    )
    z = sampler.get_samples(group_by_chain=True)
    divergences = int(np.sum(sampler.get_extra_fields()["diverging"]))
    chains_of = _described(z, guide, target)
    rhat, ess = 1.0, np.inf
    for values in chains_of.values():
        values = np.asarray(values, np.float64)
        rhat = max(rhat, float(np.nanmax(split_gelman_rubin(values))))
        ess = min(ess, float(np.nanmin(effective_sample_size(values))))
    joined = jax.tree_util.tree_map(
        lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), chains_of
    )
    return ChainDraws(joined, rhat, ess, divergences)


def has_base_space(posterior: Posterior) -> bool:
    """Whether a posterior's guide can carry a chain."""
    guide, target = posterior.guide, posterior.target
    return guide.has_base and target is not None and target.has_gradient


@eqx.filter_jit
def _described(z, guide, target):
    def one(z):
        particle, _ = guide.from_base(z)
        return target.describe(target.space.to_model(particle))

    return jax.vmap(jax.vmap(one))(z)
