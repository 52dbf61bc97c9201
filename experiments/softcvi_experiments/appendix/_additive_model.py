"""The Bayesian neural additive model of the paper's appendix."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.stats import laplace, norm
from jaxtyping import Array, Float, PRNGKeyArray, Scalar

from softcvi.guides import DiagonalNormal, VectorGuide
from softcvi.targets import DensityTarget

NUM_FEATURES = 10
NOISE_SD = 3.0
REACH = 4.0
SIZES = {"train": 300, "validation": 150, "test": 1000}
_START_SD = 0.02

Network = dict[str, Array]
Data = dict[str, dict[str, Array]]


def true_components(x: Float[Array, "*n 10"]) -> Float[Array, "*n 10"]:
    """The components behind the data: three that matter and seven that are zero.

    Args:
        x: Features.

    Example:
        >>> true_components(jnp.full(10, 2.0))[:3].round(1).tolist()
        [0.800000011920929, 2.0, -2.0]
    """
    first = [0.1 * x[..., 0] ** 3, jnp.abs(x[..., 1]), -x[..., 2]]
    return jnp.stack(first + [jnp.zeros_like(first[0])] * 7, axis=-1)


def additive_data(key: PRNGKeyArray) -> Data:
    """Simulate training, validation and test data.

    Args:
        key: Random key.

    Example:
        >>> {name: part["x"].shape for name, part in additive_data(jr.key(0)).items()}
        {'train': (300, 10), 'validation': (150, 10), 'test': (1000, 10)}
    """
    data = {}
    for name, part_key in zip(SIZES, jr.split(key, len(SIZES)), strict=True):
        x_key, y_key = jr.split(part_key)
        x = jr.uniform(x_key, (SIZES[name], NUM_FEATURES), minval=-REACH, maxval=REACH)
        truth = jnp.sum(true_components(x), axis=-1)
        noise = NOISE_SD * jr.normal(y_key, truth.shape)
        data[name] = {"x": x, "y": truth + noise, "truth": truth}
    return data


def random_network(key: PRNGKeyArray, width: int) -> Network:
    """A network for each feature, with the usual uniform start values.

    One hidden layer and no final bias: ``30 * width`` parameters in all.

    Args:
        key: Random key.
        width: Hidden units of each feature's network.

    Example:
        >>> sum(leaf.size for leaf in random_network(jr.key(0), 50).values())
        1500
    """
    bounds = {"weight": 1.0, "bias": 1.0, "output": width**-0.5}
    shape = (NUM_FEATURES, width)
    return {
        name: jr.uniform(layer_key, shape, minval=-bound, maxval=bound)
        for (name, bound), layer_key in zip(
            bounds.items(), jr.split(key, 3), strict=True
        )
    }


def components(network: Network, x: Float[Array, "*n 10"]) -> Float[Array, "*n 10"]:
    """What each feature's network adds to the prediction.

    Args:
        network: Weights, biases and output weights.
        x: Features.

    Example:
        >>> components(random_network(jr.key(0), 5), jnp.ones((4, 10))).shape
        (4, 10)
    """
    hidden = jax.nn.relu(x[..., None] * network["weight"] + network["bias"])
    return jnp.sum(hidden * network["output"], axis=-1)


def predict(network: Network, x: Float[Array, "*n 10"]) -> Float[Array, "*n"]:
    """The sum of the components.

    Args:
        network: Weights, biases and output weights.
        x: Features.

    Example:
        >>> predict(random_network(jr.key(0), 5), jnp.ones((4, 10))).shape
        (4,)
    """
    hidden = jax.nn.relu(x[..., None] * network["weight"] + network["bias"])
    # One sum over features and units, which compiles into one pass over the points.
    return jnp.sum(hidden * network["output"], axis=(-2, -1))


def additive_log_prob(network: Network, observed: dict[str, Array]) -> Scalar:
    """Log density of network and data: Laplace(0, 1) priors, known normal noise.

    Args:
        network: Weights, biases and output weights.
        observed: Features ``x`` and responses ``y``.

    Example:
        >>> data = additive_data(jr.key(0))["train"]
        >>> bool(additive_log_prob(random_network(jr.key(1), 5), data) < 0)
        True
    """
    prior = sum(jnp.sum(laplace.logpdf(leaf)) for leaf in network.values())
    residual = observed["y"] - predict(network, observed["x"])
    return prior + jnp.sum(norm.logpdf(residual, scale=NOISE_SD))


def additive_target(observed: dict[str, Array], width: int) -> DensityTarget:
    """The posterior of the networks; stacked data give a stack of targets.

    Args:
        observed: Features ``x`` and responses ``y``.
        width: Hidden units of each feature's network.

    Example:
        >>> additive_target(additive_data(jr.key(0))["train"], 100).structure.size
        3000
    """
    like = jax.eval_shape(lambda: random_network(jr.key(0), width))
    return DensityTarget(additive_log_prob, like, observed=observed)


def additive_guide(key: PRNGKeyArray, width: int) -> VectorGuide:
    """Independent normals around a random network, with sd 0.02.

    Args:
        key: Random key of that network.
        width: Hidden units of each feature's network.

    Example:
        >>> additive_guide(jr.key(0), 50).structure.size
        1500
    """
    network = random_network(key, width)
    loc = jnp.concatenate([network[name].reshape(-1) for name in sorted(network)])
    return VectorGuide(DiagonalNormal(loc, jnp.full_like(loc, _START_SD)), network)
