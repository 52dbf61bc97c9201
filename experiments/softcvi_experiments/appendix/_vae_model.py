"""A variational autoencoder: the encoder is the guide, the decoder the model."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.stats import norm
from jaxtyping import Array, Float, PRNGKeyArray, Scalar
from paramax.utils import inv_softplus

from softcvi.guides import AbstractGuide
from softcvi.targets import Structure


class Layers(eqx.Module):
    """A feed-forward network with relu between its layers.

    Args:
        key: Random key of the start values.
        sizes: Sizes of input, hidden layers and output.

    Example:
        >>> Layers(jr.key(0), [4, 3, 2])(jnp.ones(4)).shape
        (2,)
    """

    layers: tuple[eqx.nn.Linear, ...]

    def __init__(self, key: PRNGKeyArray, sizes: Sequence[int]):
        keys = jr.split(key, len(sizes) - 1)
        self.layers = tuple(
            eqx.nn.Linear(a, b, key=k)
            for a, b, k in zip(sizes[:-1], sizes[1:], keys, strict=True)
        )

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        return self.layers[-1](x)


class Encoder(AbstractGuide):
    """Independent normals for the latents of an image, by a network of the image.

    Args:
        key: Random key of the start values.
        sizes: Sizes of the image, of the hidden layers and of the latent.

    Example:
        >>> encoder = Encoder(jr.key(0), [64, 8, 2])
        >>> encoder.sample(jr.key(1), jnp.zeros(64)).shape
        (2,)
    """

    network: Layers
    structure: Structure = eqx.field(static=True)

    def __init__(self, key: PRNGKeyArray, sizes: Sequence[int]):
        self.network = Layers(key, [*sizes[:-1], 2 * sizes[-1]])
        self.structure = Structure(jnp.zeros(sizes[-1]))

    def moments(self, image: Float[Array, " pixels"]) -> tuple[Array, Array]:
        """Mean and sd of an image's latents.

        Args:
            image: The image.
        """
        loc, scale = jnp.split(self.network(image), 2)
        return loc, jax.nn.softplus(scale)

    def _sample(self, key: PRNGKeyArray, condition: Array = None) -> Array:
        loc, scale = self.moments(condition)
        return loc + scale * jr.normal(key, loc.shape)

    def _log_prob(self, particle: Array, condition: Array = None) -> Scalar:
        loc, scale = self.moments(condition)
        return jnp.sum(norm.logpdf(particle, loc, scale))


class Decoder(eqx.Module):
    """Log density of latents and an image: all its arrays are model parameters.

    Pixels are Bernoulli; like the paper, intensities between 0 and 1 are taken as
    they are. The normal prior of the latents is trained too.

    Args:
        key: Random key of the start values.
        sizes: Sizes of the latent, of the hidden layers and of the image.

    Example:
        >>> decoder = Decoder(jr.key(0), [2, 8, 64])
        >>> decoder.image(jnp.zeros(2)).shape
        (64,)
    """

    network: Layers
    prior_loc: Array
    prior_raw_scale: Array

    def __init__(self, key: PRNGKeyArray, sizes: Sequence[int]):
        self.network = Layers(key, sizes)
        self.prior_loc = jnp.zeros(sizes[0])
        self.prior_raw_scale = inv_softplus(jnp.ones(sizes[0]))

    @property
    def prior_scale(self) -> Array:
        """Standard deviations of the prior, kept positive by softplus."""
        return jax.nn.softplus(self.prior_raw_scale)

    def __call__(
        self, latents: Float[Array, " z"], image: Float[Array, " pixels"]
    ) -> Scalar:
        logits = self.network(latents)
        prior = jnp.sum(norm.logpdf(latents, self.prior_loc, self.prior_scale))
        return prior + jnp.sum(image * logits - jax.nn.softplus(logits))

    def image(self, latents: Float[Array, " z"]) -> Float[Array, " pixels"]:
        """Probabilities of the pixels.

        Args:
            latents: The latents.
        """
        return jax.nn.sigmoid(self.network(latents))


@eqx.filter_jit
def decoded_grid(decoder: Decoder, num: int = 13) -> Float[Array, "num num pixels"]:
    """Decode a grid of the prior's quantiles from 0.1 to 0.9.

    Args:
        decoder: The decoder of two latents.
        num: Quantiles along each latent.

    Example:
        >>> decoder = Decoder(jr.key(0), [2, 8, 64])
        >>> decoded_grid(decoder, 3).shape
        (3, 3, 64)
    """
    quantiles = norm.ppf(jnp.linspace(0.1, 0.9, num))
    first, second = jnp.meshgrid(quantiles, quantiles)
    latents = jnp.stack([first, second], -1)
    latents = decoder.prior_loc + decoder.prior_scale * latents
    return jax.vmap(jax.vmap(decoder.image))(latents)


@eqx.filter_jit
def bounds(
    key: PRNGKeyArray,
    encoder: Encoder,
    decoder: Decoder,
    images: Float[Array, "n pixels"],
    num_draws: int,
) -> tuple[Scalar, Scalar]:
    """Mean evidence lower bound of images, and the importance-weighted bound.

    Args:
        key: Random key.
        encoder: The encoder.
        decoder: The decoder.
        images: The images.
        num_draws: Draws for each image, for both bounds.

    Example:
        >>> encoder = Encoder(jr.key(0), [64, 8, 2])
        >>> decoder = Decoder(jr.key(1), [2, 8, 64])
        >>> elbo, iwae = bounds(jr.key(2), encoder, decoder, jnp.ones((5, 64)), 10)
        >>> bool(elbo < iwae)
        True
    """

    def one(datum: tuple[PRNGKeyArray, Array]) -> tuple[Array, Array]:
        image_key, image = datum
        latents, log_q = jax.vmap(lambda k: encoder.sample_and_log_prob(k, image))(
            jr.split(image_key, num_draws)
        )
        log_w = jax.vmap(lambda z: decoder(z, image))(latents) - log_q
        weighted = jax.nn.logsumexp(log_w) - jnp.log(num_draws)
        return jnp.mean(log_w), weighted

    keys = jr.split(key, len(images))
    elbo, iwae = jax.lax.map(one, (keys, images), batch_size=50)
    return jnp.mean(elbo), jnp.mean(iwae)
