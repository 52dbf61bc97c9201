"""NumPyro's autoencoder example on the digits that scikit-learn brings."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import optax
from numpyro.infer import SVI, Trace_ELBO

from softcvi.adapters import SoftCVILoss

_PIXELS, _HIDDEN, _LATENT, _BATCH = 64, 64, 8, 128


def _layer(name: str, inputs: int, outputs: int, x: jax.Array) -> jax.Array:
    initial = jax.random.normal(jax.random.key(sum(name.encode())), (inputs, outputs))
    weight = numpyro.param(f"{name}_weight", initial / jnp.sqrt(inputs))
    return x @ weight + numpyro.param(f"{name}_bias", jnp.zeros(outputs))


def model(batch):
    """The decoder."""
    with numpyro.plate("batch", batch.shape[0]):
        z = numpyro.sample("z", dist.Normal(0, 1).expand([_LATENT]).to_event(1))
        hidden = jax.nn.softplus(_layer("decoder1", _LATENT, _HIDDEN, z))
        logits = _layer("decoder2", _HIDDEN, _PIXELS, hidden)
        numpyro.sample("pixels", dist.Bernoulli(logits=logits).to_event(1), obs=batch)


def guide(batch):
    """The encoder."""
    hidden = jax.nn.softplus(_layer("encoder1", _PIXELS, _HIDDEN, batch))
    loc = _layer("encoder_loc", _HIDDEN, _LATENT, hidden)
    scale = jnp.exp(_layer("encoder_scale", _HIDDEN, _LATENT, hidden) - 1.0)
    with numpyro.plate("batch", batch.shape[0]):
        numpyro.sample("z", dist.Normal(loc, scale).to_event(1))


def train(loss_name: str, *, steps: int = 3000, seed: int = 0) -> float:
    """Train by SVI and return the ELBO per held-out image, the larger the better.

    Args:
        loss_name: ``"SoftCVILoss"`` or ``"Trace_ELBO"``.
        steps: Mini-batch steps.
        seed: Seed of the run.
    """
    from sklearn.datasets import load_digits

    pixels = jnp.asarray(load_digits().data > 7.5, float)
    pixels = jax.random.permutation(jax.random.key(1), pixels)
    held_out, train_set = pixels[:297], pixels[297:]
    losses = {"SoftCVILoss": SoftCVILoss(8), "Trace_ELBO": Trace_ELBO(8)}
    svi = SVI(model, guide, optax.adam(1e-3), losses[loss_name])
    state = svi.init(jax.random.key(seed), train_set[:_BATCH])

    def step(state, i):
        key = jax.random.fold_in(jax.random.key(seed), i)
        index = jax.random.randint(key, (_BATCH,), 0, train_set.shape[0])
        return svi.update(state, train_set[index])

    state, _ = jax.jit(lambda s: jax.lax.scan(step, s, jnp.arange(steps)))(state)
    bound = Trace_ELBO(num_particles=50).loss(
        jax.random.key(2), svi.get_params(state), model, guide, held_out
    )
    return -float(bound) / held_out.shape[0]
