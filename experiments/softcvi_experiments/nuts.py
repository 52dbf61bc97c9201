"""NUTS by NumPyro: one wrapper, and one rule for when its draws are trusted."""

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray, PyTree

from softcvi.diagnostics import Evidence, SamplerEvidence, judge
from softcvi.targets import AbstractTarget


def trusted_by_checks(checks: Mapping[str, float]) -> bool:
    """The library's own rule for chains, applied to the numbers of a record.

    Args:
        checks: ``rhat``, ``ess``, ``divergent`` and ``draws``.

    Example:
        >>> trusted_by_checks({"rhat": 1.02, "ess": 900, "divergent": 0, "draws": 4000})
        False
    """
    sampler = SamplerEvidence(
        rhat=checks["rhat"],
        ess=checks["ess"],
        divergences=int(checks["divergent"]),
        num_draws=int(checks["draws"]),
    )
    return judge(Evidence(sampler=sampler)).trusted


@dataclasses.dataclass(frozen=True)
class Chains:
    """Draws of several chains and their checks.

    Attributes:
        by_chain: Arrays of shape (chains, draws, ...) by site.
        rhat: Largest R-hat of all parameters.
        ess: Smallest effective sample size.
        divergences: Divergent transitions after warm-up.
        seconds: Wall time with compilation.

    Example:
        >>> draws = {"x": np.random.default_rng(0).normal(size=(4, 500))}
        >>> Chains.from_draws(draws).trusted
        True
    """

    by_chain: Mapping[str, np.ndarray]
    rhat: float
    ess: float
    divergences: int
    seconds: float

    @classmethod
    def from_draws(
        cls, by_chain: Mapping[str, Any], divergences: int = 0, seconds: float = 0.0
    ) -> "Chains":
        """Chains with R-hat and effective sample size computed."""
        from numpyro.diagnostics import summary

        arrays = {name: np.asarray(value) for name, value in by_chain.items()}
        with np.errstate(invalid="ignore", divide="ignore"):
            checks = summary(arrays).values()
        # The constant entries of a Cholesky factor have no R-hat.
        rhat = max(float(np.nanmax(check["r_hat"])) for check in checks)
        ess = min(float(np.nanmin(check["n_eff"])) for check in checks)
        return cls(arrays, rhat, ess, divergences, seconds)

    @property
    def draws(self) -> dict[str, np.ndarray]:
        """Draws of all chains, one after the other."""
        return {k: v.reshape(-1, *v.shape[2:]) for k, v in self.by_chain.items()}

    @property
    def trusted(self) -> bool:
        """Whether R-hat, effective sample size and divergences are all good."""
        return trusted_by_checks(self.checks)

    @property
    def checks(self) -> dict[str, float]:
        """What the rule looks at, for a record."""
        chains, draws = next(iter(self.by_chain.values())).shape[:2]
        return {
            "rhat": self.rhat,
            "ess": self.ess,
            "divergent": self.divergences,
            "draws": chains * draws,
        }

    def __str__(self) -> str:
        return (
            f"R-hat {self.rhat:.3f}, ESS {self.ess:.0f}, {self.divergences} divergent"
        )


def sample_model(
    key: PRNGKeyArray,
    model: Callable,
    args: tuple = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    chains: int = 4,
    warmup: int = 1_000,
    samples: int = 1_000,
    thinning: int = 1,
    parallel: bool = False,
    **kernel: Any,
) -> Chains:
    """Draw from the posterior of a NumPyro model.

    Args:
        key: Random key.
        model: The model.
        args: Its arguments.
        kwargs: Its keyword arguments.
        chains: Number of chains.
        warmup: Warm-up iterations of each chain.
        samples: Iterations of each chain after that.
        thinning: Keep every so many draws.
        parallel: One device per chain instead of one vectorised program; needs
            ``numpyro.set_host_device_count`` before JAX starts.
        **kernel: Settings of ``numpyro.infer.NUTS``.

    Example:
        >>> import numpyro, numpyro.distributions as dist
        >>> def model():
        ...     numpyro.sample("x", dist.Normal(0.0, 1.0))
        >>> run = sample_model(jax.random.key(0), model, warmup=100, samples=50)
        >>> run.by_chain["x"].shape
        (4, 50)
    """
    from numpyro.infer import NUTS

    sampler = NUTS(model, **kernel)
    options = (chains, warmup, samples, thinning, parallel)
    return _run(key, sampler, options, args, dict(kwargs or {}))


def sample_target(
    key: PRNGKeyArray,
    target: AbstractTarget,
    *,
    chains: int = 4,
    warmup: int = 1_000,
    samples: int = 1_000,
    **kernel: Any,
) -> Chains:
    """Draw from a target with a gradient, from starts of the target's own.

    Args:
        key: Random key.
        target: The target.
        chains: Number of chains.
        warmup: Warm-up iterations of each chain.
        samples: Iterations of each chain after that.
        **kernel: Settings of ``numpyro.infer.NUTS``.

    Returns:
        Chains in model coordinates.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> run = sample_target(jax.random.key(0), target, warmup=100, samples=50)
        >>> run.by_chain["value"].shape
        (4, 50, 2)
    """
    run_key, start_key = jax.random.split(key)
    starts = jax.vmap(target.initial_particle)(jax.random.split(start_key, chains))

    def to_model(u: PyTree) -> dict[str, Any]:
        return target.describe(target.space.to_model(u))

    return sample_potential(
        run_key,
        lambda u: -target.log_density(u),
        starts,
        to_model,
        warmup=warmup,
        samples=samples,
        **kernel,
    )


def sample_potential(
    key: PRNGKeyArray,
    potential: Callable,
    starts: PyTree,
    to_sites: Callable,
    *,
    warmup: int = 1_000,
    samples: int = 1_000,
    **kernel: Any,
) -> Chains:
    """Draw from a density given by its potential (minus its logarithm).

    Args:
        key: Random key.
        potential: Function of one point.
        starts: Starting points along the leading axis, one per chain.
        to_sites: Function from one point to named arrays.
        warmup: Warm-up iterations of each chain.
        samples: Iterations of each chain after that.
        **kernel: Settings of ``numpyro.infer.NUTS``.

    Example:
        >>> import jax.numpy as jnp
        >>> run = sample_potential(
        ...     jax.random.key(0), lambda x: 0.5 * jnp.sum(x**2), jnp.zeros((4, 2)),
        ...     lambda x: {"x": x}, warmup=100, samples=50,
        ... )
        >>> run.by_chain["x"].shape
        (4, 50, 2)
    """
    from numpyro.infer import NUTS

    chains = len(jax.tree_util.tree_leaves(starts)[0])
    options = (chains, warmup, samples, 1, False)
    sampler = NUTS(potential_fn=potential, **kernel)
    return _run(key, sampler, options, (), {"init_params": starts}, to_sites)


def _run(key, sampler, options, args, kwargs, to_model=None) -> Chains:
    from numpyro.infer import MCMC

    chains, warmup, samples, thinning, parallel = options
    began = time.perf_counter()
    mcmc = MCMC(
        sampler,
        num_warmup=warmup,
        num_samples=samples,
        num_chains=chains,
        thinning=thinning,
        chain_method="parallel" if parallel else "vectorized",
        progress_bar=False,
    )
    mcmc.run(key, *args, extra_fields=("diverging",), **kwargs)
    by_chain = mcmc.get_samples(group_by_chain=True)
    if to_model is not None:
        by_chain = jax.jit(jax.vmap(jax.vmap(to_model)))(by_chain)
    by_chain = jax.device_get(by_chain)
    divergences = int(mcmc.get_extra_fields()["diverging"].sum())
    return Chains.from_draws(by_chain, divergences, time.perf_counter() - began)
