"""Ways in which the truth about a zoo model is established."""

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softcvi_experiments.nuts import sample_model, sample_potential

Draws = dict[str, np.ndarray]


class AbstractStrategy(abc.ABC):
    """A recipe for draws of shape (chains, draws, ...) from a zoo model."""

    provenance: str

    @abc.abstractmethod
    def draws(
        self,
        model: Callable[..., Any],
        args: tuple,
        kwargs: Mapping[str, Any],
        seed: int,
        effort: float,
    ) -> Draws:
        """Draws by chain; ``effort`` multiplies the length of the run."""

    def finish(self, draws: Draws, rng: np.random.Generator) -> Draws:
        """What is done to the pooled draws once convergence has been checked."""
        del rng
        return draws


@dataclass(frozen=True)
class LongNUTS(AbstractStrategy):
    """Many vectorised NUTS chains in double precision.

    Attributes:
        provenance: What is said of the method in the stored file.
        model: A twin of the model with an easier geometry that records the
            original sites as ``numpyro.deterministic``; the model itself if None.
        init: Starting values by site, for posteriors with spurious local modes of
            negligible mass; uniform starts if empty.
        dense_mass: Whether the mass matrix is dense.
        accept: Target acceptance probability.
        warmup: Warm-up iterations per chain.
        samples: Kept iterations per chain.
        chains: Number of chains.
        max_depth: Largest tree depth.

    Example:
        >>> LongNUTS(samples=10, chains=2).provenance
        'NUTS'
    """

    provenance: str = "NUTS"
    model: Callable[..., Any] | None = None
    init: Mapping[str, Any] = field(default_factory=dict)
    dense_mass: bool = False
    accept: float = 0.9
    warmup: int = 1_000
    samples: int = 1_000
    chains: int = 16
    max_depth: int = 10

    def draws(self, model, args, kwargs, seed, effort):
        """Run the chains (see the base class)."""
        import jax
        from numpyro.infer import init_to_uniform, init_to_value

        start = init_to_value(values=dict(self.init)) if self.init else init_to_uniform
        run = sample_model(
            jax.random.key(seed),
            self.model or model,
            args,
            kwargs,
            chains=self.chains,
            warmup=self.warmup,
            samples=max(int(self.samples * effort), 1),
            dense_mass=self.dense_mass,
            target_accept_prob=self.accept,
            max_tree_depth=self.max_depth,
            init_strategy=start,
        )
        return dict(run.by_chain)


@dataclass(frozen=True)
class WhitenedNUTS(AbstractStrategy):
    """NUTS in coordinates whitened by the Hessian at the posterior mode.

    An affine change of the unconstrained coordinates leaves the posterior as it is
    but spares the chains the search for a mass matrix, which fails on posteriors
    whose scales differ by many orders of magnitude.

    Attributes:
        init: Values by site from which the mode is sought.
        accept: Target acceptance probability.
        warmup: Warm-up iterations per chain.
        samples: Kept iterations per chain.
        chains: Number of chains.
        provenance: What is said of the method in the stored file.
    """

    init: Mapping[str, Any]
    accept: float = 0.9
    warmup: int = 500
    samples: int = 1_000
    chains: int = 16
    provenance: str = "NUTS in coordinates whitened at the posterior mode"

    def draws(self, model, args, kwargs, seed, effort):
        """Find the mode, whiten, run the chains (see the base class)."""
        import jax
        from jax.flatten_util import ravel_pytree
        from numpyro.infer import init_to_value
        from numpyro.infer.util import initialize_model

        mode_key, start_key, run_key = jax.random.split(jax.random.key(seed), 3)
        info = initialize_model(
            mode_key,
            model,
            init_strategy=init_to_value(values=dict(self.init)),
            model_args=args,
            model_kwargs=dict(kwargs),
            dynamic_args=False,
        )
        flat, unravel = ravel_pytree(info.param_info.z)
        mode, factor = _mode_and_factor(lambda u: info.potential_fn(unravel(u)), flat)

        def sites(z):
            return info.postprocess_fn(unravel(mode + factor @ z))

        # Starts wider than the posterior, so that R-hat can see a lack of mixing.
        start = 2.0 * jax.random.normal(start_key, (self.chains, len(mode)))
        run = sample_potential(
            run_key,
            lambda z: info.potential_fn(unravel(mode + factor @ z)),
            start,
            sites,
            warmup=self.warmup,
            samples=max(int(self.samples * effort), 1),
            target_accept_prob=self.accept,
        )
        return dict(run.by_chain)


def _mode_and_factor(potential, flat):
    """Mode by damped Newton steps, and a square root of the inverse Hessian."""
    import jax
    import jax.numpy as jnp

    value_and_grad = jax.jit(jax.value_and_grad(potential))
    hessian = jax.jit(jax.hessian(potential))

    def positive(matrix):
        # Negative curvature away from the mode is turned round, scale by scale.
        scale = jnp.sqrt(jnp.abs(jnp.diagonal(matrix)) + 1e-12)
        values, vectors = jnp.linalg.eigh(matrix / jnp.outer(scale, scale))
        return scale, jnp.maximum(jnp.abs(values), 1e-8), vectors

    for _ in range(100):
        value, gradient = value_and_grad(flat)
        scale, values, vectors = positive(hessian(flat))
        step = vectors @ ((vectors.T @ (gradient / scale)) / values) / scale
        if gradient @ step < 1e-10:
            break
        size = 1.0
        while not potential(flat - size * step) < value and size > 1e-10:
            size /= 2.0
        flat = flat - size * step
    scale, values, vectors = positive(hessian(flat))
    return flat, (vectors / jnp.sqrt(values)) / scale[:, None]


@dataclass(frozen=True)
class SymmetrisedNUTS(AbstractStrategy):
    """NUTS in one copy of a posterior that is invariant under a relabelling.

    Each chain stays near one of the copies; ``fold`` maps every draw into the same
    one, where the chains must agree; ``swap`` is then applied to a random half.

    Attributes:
        fold: Maps a draw (leading axes allowed) into the fundamental copy.
        swap: Maps a draw to its mirror image.
        nuts: How the chains are run.
        provenance: What is said of the method in the stored file.
    """

    fold: Callable[[Draws], Draws]
    swap: Callable[[Draws], Draws]
    nuts: LongNUTS = field(default_factory=LongNUTS)
    provenance: str = "NUTS, relabelled to one mode, then symmetrised exactly"

    def draws(self, model, args, kwargs, seed, effort):
        """Run the chains and fold them (see the base class)."""
        return self.fold(self.nuts.draws(model, args, kwargs, seed, effort))

    def finish(self, draws, rng):
        """Mirror a random half of the draws and keep the other."""
        mirrored = self.swap(draws)
        size = len(next(iter(draws.values())))
        half = rng.permutation(size) < size // 2
        return {
            site: np.where(
                half.reshape((-1,) + (1,) * (value.ndim - 1)), mirrored[site], value
            )
            for site, value in draws.items()
        }


@dataclass(frozen=True)
class DirectDraws(AbstractStrategy):
    """Independent draws of a target that can be sampled exactly.

    Attributes:
        sample: Function of a NumPy generator and a number of draws.
        size: Number of draws.
        provenance: What is said of the method in the stored file.

    Example:
        >>> direct = DirectDraws(lambda rng, n: {"x": rng.normal(size=n)}, size=40)
        >>> direct.draws(None, (), {}, seed=0, effort=1.0)["x"].shape
        (4, 10)
    """

    sample: Callable[[np.random.Generator, int], Draws]
    size: int = 200_000
    provenance: str = "independent draws of the exact distribution"

    def draws(self, model, args, kwargs, seed, effort):
        """Draw independently (see the base class)."""
        del model, args, kwargs
        size = 4 * max(int(self.size * effort) // 4, 1)
        flat = self.sample(np.random.default_rng(seed), size)
        return {k: v.reshape(4, size // 4, *v.shape[1:]) for k, v in flat.items()}
