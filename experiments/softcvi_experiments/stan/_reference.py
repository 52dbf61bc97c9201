"""Long NUTS runs on Stan programs: means and standard deviations to compare with."""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import PRNGKeyArray

from softcvi.adapters import StanTarget
from softcvi_experiments.nuts import Chains, sample_potential

Draws = Mapping[str, np.ndarray]
_CHAINS = 8
_LOG_DENSITY = "log density"


@dataclass(frozen=True)
class Reference:
    """Moments of every scalar of a program by NUTS, and whether they can be believed.

    Attributes:
        mean: Means by variable.
        sd: Standard deviations by variable; zero for constants.
        rhat: Largest R-hat over all variables.
        ess: Smallest effective sample size.
        divergences: Divergent transitions after warm-up.
        seconds: Wall time with compilation.

    Example:
        >>> chains = {"x": np.random.default_rng(0).normal(size=(4, 500))}
        >>> reference = Reference.of(Chains.from_draws(chains))
        >>> reference.is_sound
        True
    """

    mean: Draws
    sd: Draws
    rhat: float
    ess: float
    divergences: int
    seconds: float

    @classmethod
    def of(cls, chains: Chains) -> "Reference":
        """The moments of chains."""
        flat = {name: np.asarray(v, np.float64) for name, v in chains.draws.items()}
        return cls(
            mean={name: v.mean(0) for name, v in flat.items()},
            sd={name: v.std(0) for name, v in flat.items()},
            rhat=chains.rhat,
            ess=chains.ess,
            divergences=chains.divergences,
            seconds=chains.seconds,
        )

    @classmethod
    def from_record(cls, record: Mapping) -> "Reference":
        """The reference that a record holds."""
        rest = {k: record[k] for k in ("rhat", "ess", "divergences", "seconds")}
        mean, sd = (
            {k: np.asarray(v, np.float64) for k, v in record[part].items()}
            for part in ("mean", "sd")
        )
        return cls(mean, sd, **rest)

    def to_record(self) -> dict:
        """JSON-friendly values."""
        return {
            "mean": {name: value.tolist() for name, value in self.mean.items()},
            "sd": {name: value.tolist() for name, value in self.sd.items()},
            "rhat": self.rhat,
            "ess": self.ess,
            "divergences": self.divergences,
            "seconds": round(self.seconds, 1),
        }

    @property
    def is_sound(self) -> bool:
        """Chains agree, and Monte Carlo errors are far below what is looked for."""
        return self.rhat <= 1.02 and self.ess >= 400


def nuts(
    target: StanTarget,
    draws: Draws,
    seed: int = 0,
    *,
    warmup: int = 500,
    samples: int = 1_000,
) -> Reference:
    """Moments by NumPyro's NUTS on a Stan program.

    Half of the eight chains start at draws of a fit, half at local maxima found from
    dispersed points: if the fit has missed a mode that these find, R-hat tells. Chains
    that stay where the density is negligible, beside that of the best chain, are left
    out. Coordinates are whitened by the covariance of the draws, since in raw units
    NUTS takes its longest paths.

    Args:
        target: The program.
        draws: Draws of a fit, by name.
        seed: Seed of the chains.
        warmup: Iterations to adapt in, with a dense mass matrix.
        samples: Iterations kept per chain.

    Example:
        >>> from softcvi_experiments import stan
        >>> target = stan.target("garch11")  # doctest: +SKIP
        >>> stan.nuts(target, draws).is_sound  # doctest: +SKIP
        True
    """
    key = jax.random.key(seed)
    back = jax.jit(jax.vmap(lambda x: target.space.from_model_and_log_det(x)[0]))
    given = {name: jnp.asarray(v[:2000]) for name, v in draws.items()}
    points = np.asarray(back(given)["unconstrained"], np.float64)
    points = points[np.isfinite(points).all(1)]
    centre = points.mean(0)
    size = points.shape[1]
    covariance = np.atleast_2d(np.cov(points.T))
    # A little of the diagonal, for draws fewer than a few per parameter.
    covariance += 0.02 * np.diag(np.diag(covariance))
    factor = np.linalg.cholesky(covariance)
    half = _CHAINS // 2
    starts = np.concatenate([points[:half], _local_maxima(target, key, half)])
    whitened = np.linalg.solve(factor, (starts - centre).T).T

    def to_particle(z):
        return {"unconstrained": centre + factor @ z}

    chains = sample_potential(
        key,
        lambda z: -target.log_density(to_particle(z)),
        jnp.asarray(whitened),
        lambda z: {
            **target.describe(target.space.to_model(to_particle(z))),
            _LOG_DENSITY: target.log_density(to_particle(z)),
        },
        warmup=warmup,
        samples=samples,
        dense_mass=size <= 200,
        target_accept_prob=0.9,
    )
    return Reference.of(_without_negligible(chains, size))


def _local_maxima(target: StanTarget, key: PRNGKeyArray, count: int) -> np.ndarray:
    """Points that L-BFGS climbs to from points of the target's own."""
    dispersed = jax.vmap(target.initial_particle)(jax.random.split(key, 50 * count))
    points = np.asarray(dispersed["unconstrained"], np.float64)
    points = points[np.isfinite(target.program.log_density(points))][:count]

    def negative(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = target.program.log_density_and_gradient(x[None])
        if not np.isfinite(value[0]):
            return 1e100, np.zeros_like(x)
        return -value[0], -gradient[0]

    found = [
        scipy.optimize.minimize(
            negative, x, jac=True, method="L-BFGS-B", options={"maxiter": 300}
        ).x
        for x in points
    ]
    ends = jnp.reshape(jnp.asarray(found), (-1, points.shape[1]))
    back = jax.vmap(lambda x: target.space.from_model_and_log_det(x)[0])
    return np.asarray(back({"unconstrained": ends})["unconstrained"])


def _without_negligible(chains: Chains, size: int) -> Chains:
    """Chains whose log densities are near those of the best."""
    by_chain = dict(chains.by_chain)
    level = np.mean(by_chain.pop(_LOG_DENSITY), axis=1)
    # Twenty nats are a factor of 1e9; log densities of a chain spread by sqrt(d / 2).
    kept = level > np.max(level) - 20 - 3 * np.sqrt(size)
    by_chain = {name: values[kept] for name, values in by_chain.items()}
    return Chains.from_draws(by_chain, chains.divergences, chains.seconds)
