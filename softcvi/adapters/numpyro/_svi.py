"""SoftCVI as a loss for NumPyro's own ``SVI``."""

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray, Scalar

from softcvi.adapters._extras import require
from softcvi.adapters.numpyro._call import substitute
from softcvi.adapters.numpyro._guide import numpyro_guide
from softcvi.adapters.numpyro._match import (
    check_guide_class,
    check_match,
    common_plates,
    is_delta,
    reduced_log_prob,
    unconstrained,
)
from softcvi.adapters.numpyro._model import target_in_step
from softcvi.objectives import (
    AbstractBlocks,
    AbstractDivergence,
    AbstractNegative,
    AbstractProposal,
    ForwardKL,
    GuideProposal,
    NoBlocks,
    Particles,
    SoftCVI,
    TemperedProposal,
)


class SoftCVILoss:
    """Drop-in loss: ``SVI(model, guide, optim, loss=SoftCVILoss())``.

    The gradient is SoftCVI's; the *value* is the negative ELBO of the same particles,
    so that losses compare with those of ``Trace_ELBO`` (the raw value of the
    cross-entropy says nothing about the fit). Neither a gradient of the model nor a
    reparameterised draw is needed, so latent sites may be discrete. Parameters of the
    model are trained by the mean log density of the particles, as in the ELBO. Where
    one plate holds every site, labels are normalised per element of it, which makes
    mini-batches sound.

    The negative is tempered on the unconstrained space, as in ``from_numpyro``. There
    is no start here and the rate is the optimiser's: far from the posterior one label
    takes all the weight, and posteriors come out too wide until the guide has arrived.
    ``softcvi.adapters.numpyro.svi`` looks for the posterior first.

    Args:
        num_particles: K, at least 2.
        alpha: Power of the guide in the negative distribution.
        negative: Another negative distribution of ``softcvi.objectives``.
        divergence: Between labels and predictions, forward KL by default.
        temperature: Divides the logits of labels and predictions alike.
        label_smoothing: Share of uniform labels mixed in.
        proposal: Where particles come from, the guide by default: a distribution on
            the unconstrained space, by the names of the sites.
        blocks: What the particles of a set differ in, such as ``SiteBlocks()``. With
            blocks or a proposal labels are those of whole particles, and no plate may
            subsample. Blocks need a guide that makes its draws from normal noise, as
            AutoGuides do.
        vectorize_particles: Evaluate particles by ``jax.vmap`` (True) or one after the
            other (False).

    Example:
        >>> import jax, jax.numpy as jnp, numpyro, numpyro.distributions as dist, optax
        >>> from numpyro.infer import SVI
        >>> from numpyro.infer.autoguide import AutoNormal
        >>> from softcvi.adapters import SoftCVILoss
        >>> def model(y):
        ...     mu = numpyro.sample("mu", dist.Normal(0, 10))
        ...     numpyro.sample("y", dist.Normal(mu, 1), obs=y)
        >>> svi = SVI(model, AutoNormal(model), optax.adam(0.05), SoftCVILoss())
        >>> y = jnp.array([1.0, 2.0, 3.0])
        >>> result = svi.run(jax.random.key(0), 500, y, progress_bar=False)
        >>> bool(abs(result.params["mu_auto_loc"] - 2.0) < 0.2)
        True
    """

    # What SVI asks of a loss.
    can_infer_discrete: ClassVar[bool] = True
    multi_sample_guide: ClassVar[bool] = False

    def __init__(
        self,
        num_particles: int = 8,
        alpha: float = 0.75,
        vectorize_particles: bool = True,
        *,
        negative: AbstractNegative | None = None,
        divergence: AbstractDivergence | None = None,
        temperature: float = 1.0,
        label_smoothing: float = 0.0,
        proposal: AbstractProposal | None = None,
        blocks: AbstractBlocks | None = None,
    ):
        # The objective checks its arguments.
        self.objective = SoftCVI(
            num_particles,
            TemperedProposal(alpha) if negative is None else negative,
            divergence=ForwardKL() if divergence is None else divergence,
            temperature=temperature,
            label_smoothing=label_smoothing,
            proposal=GuideProposal() if proposal is None else proposal,
            blocks=NoBlocks() if blocks is None else blocks,
        )
        self.num_particles = num_particles
        self.vectorize_particles = vectorize_particles

    def loss(
        self,
        rng_key: PRNGKeyArray,
        param_map: dict[str, Any],
        model: Callable,
        guide: Callable,
        *args: Any,
        **kwargs: Any,
    ) -> Scalar:
        """The loss of one step, as NumPyro's ``ELBO.loss``."""
        numpyro = require("numpyro", "numpyro")
        check_guide_class(guide)
        if self.objective.blocks.shares_noise or not self.objective.proposal.is_guide:
            return self._loss_of_whole(rng_key, param_map, model, guide, args, kwargs)
        plate_key, rng_key = jax.random.split(rng_key)
        hidden = ["sample", "prng_key", "control_flow"]
        # Particles share the subsample of a plate: they compete on the same data.
        model = numpyro.handlers.seed(model, plate_key, hide_types=hidden)
        guide = numpyro.handlers.seed(guide, plate_key, hide_types=hidden)
        facts: dict[str, Any] = {}

        def evaluate(key: PRNGKeyArray) -> tuple[Array, Array, Array, dict]:
            return _evaluate(key, param_map, model, guide, args, kwargs, facts)

        keys = jax.random.split(rng_key, self.num_particles)
        apply = jax.vmap if self.vectorize_particles else _one_by_one
        log_p, log_q, log_det, values = apply(evaluate)(keys)
        flat = [
            jnp.reshape(a, (self.num_particles, -1)) for a in (log_p, log_q, log_det)
        ]
        losses, infos = jax.vmap(self._contrast, in_axes=(1, 1, 1, None))(*flat, values)
        total = jnp.sum(jnp.where(infos.usable, losses, 0.0))
        if facts["model_params"]:
            finite = jnp.isfinite(flat[0])
            total = total - jnp.sum(jnp.where(finite, flat[0], 0.0)) / len(flat[0])
        bound = jnp.where(jnp.all(infos.usable), jnp.sum(infos.elbo), jnp.nan)
        scaled = facts["scale"] * (total - jax.lax.stop_gradient(total))
        return scaled - facts["scale"] * jax.lax.stop_gradient(bound)

    def _loss_of_whole(
        self,
        key: PRNGKeyArray,
        param_map: dict[str, Any],
        model: Callable,
        guide: Callable,
        args: tuple,
        kwargs: dict[str, Any],
    ) -> Scalar:
        """The loss with particles as ``softcvi.fit`` makes them."""
        model = substitute(param_map)(model)
        target = target_in_step(model, args, kwargs)
        if target.subsampled:
            raise ValueError(
                f"model: the plate '{target.subsampled[0]}' subsamples, where labels "
                "of whole particles are biased. Leave out proposal and blocks, or use "
                "all the data."
            )
        scored = numpyro_guide(guide, target, param_map)
        particles = self.objective.draw(key, scored, target)
        loss, info = self.objective.value(particles)
        if target.params:
            finite = jnp.isfinite(particles.log_p)
            loss = loss - jnp.mean(jnp.where(finite, particles.log_p, 0.0))
        bound = jnp.where(info.usable, info.elbo, jnp.nan)
        return loss - jax.lax.stop_gradient(loss + bound)

    def loss_with_mutable_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """As NumPyro's; mutable sites are not supported."""
        raise NotImplementedError(
            "SoftCVILoss runs the model once per particle, so it cannot say which of "
            "the mutable states to keep. Use a model without numpyro.mutable sites "
            "(for batch normalisation: flax_module(..., mutable=[]))."
        )

    def _contrast(self, log_p: Array, log_q: Array, log_det: Array, values: dict):
        # On the unconstrained space, where negatives are tempered.
        log_p, log_q = log_p + log_det, log_q + log_det
        fixed = jax.lax.stop_gradient(log_q)
        return self.objective.value(Particles(values, log_p, log_q, fixed))


def _one_by_one(evaluate: Callable) -> Callable:
    return lambda keys: jax.lax.map(evaluate, keys)


def _evaluate(
    key: PRNGKeyArray,
    param_map: dict[str, Any],
    model: Callable,
    guide: Callable,
    args: tuple,
    kwargs: dict[str, Any],
    facts: dict[str, Any],
) -> tuple[Array, Array, Array, dict]:
    """Log densities of one particle, by element of the plates that hold every site.

    Also the log Jacobian and the particle itself, on the unconstrained space.
    """
    handlers = require("numpyro", "numpyro").handlers
    model_key, guide_key = jax.random.split(key)
    guide = handlers.seed(guide, guide_key)
    fixed = handlers.substitute(guide, data=jax.lax.stop_gradient(param_map))
    drawn = handlers.trace(fixed).get_trace(*args, **kwargs)
    draws = {
        name: jax.lax.stop_gradient(site["value"])
        for name, site in drawn.items()
        if site["type"] == "sample" and not site["is_observed"]
    }
    plates = {n: s["value"] for n, s in drawn.items() if s["type"] == "plate"}
    # Delta sites follow from auxiliary ones: fixing them too would cost log q its
    # log Jacobian, and compare floats for equality.
    free = {name: v for name, v in draws.items() if not is_delta(drawn[name]["fn"])}
    scored = handlers.substitute(
        handlers.substitute(guide, data=param_map), data={**free, **plates}
    )
    guide_trace = handlers.trace(scored).get_trace(*args, **kwargs)
    seeded = handlers.seed(model, model_key)
    replayed = handlers.substitute(
        handlers.substitute(seeded, data=param_map), data={**draws, **plates}
    )
    model_trace = handlers.trace(replayed).get_trace(*args, **kwargs)
    check_match(model_trace, guide_trace)
    shared, scale, biased = common_plates(model_trace, guide_trace)
    if biased is not None:
        warnings.warn(
            f"SoftCVILoss: the plate '{biased}' subsamples the data of global latents, "
            "for which SoftCVI is biased (posteriors come out too wide). Use "
            "Trace_ELBO there, or all the data; latents inside the plate are fine.",
            stacklevel=2,
        )
    facts["scale"] = scale
    facts["model_params"] = any(s["type"] == "param" for s in model_trace.values())
    log_p = sum(
        reduced_log_prob(site, shared) / scale
        for site in model_trace.values()
        if site["type"] == "sample"
    )
    log_q = sum(
        reduced_log_prob(site, shared) / scale
        for site in guide_trace.values()
        if site["type"] == "sample"
    )
    values, log_det = unconstrained(model_trace, shared)
    return log_p, log_q, log_det, values
