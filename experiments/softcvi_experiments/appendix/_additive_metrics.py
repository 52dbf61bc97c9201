"""How well a fitted neural additive model predicts, and how sure it is of itself."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import paramax
from jax.scipy.special import logsumexp
from jax.scipy.stats import norm
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi.guides import AbstractGuide
from softcvi_experiments.appendix._additive_model import (
    NOISE_SD,
    NUM_FEATURES,
    REACH,
    components,
    predict,
    true_components,
)
from softcvi_experiments.appendix._early_stopping import Score

ValidationName = Literal["published", "predictive"]
_VALIDATION_DRAWS = 100
_GRID = 41


def log_mean_likelihood(
    key: PRNGKeyArray,
    predictions: Float[Array, "draws points"],
    y: Float[Array, " points"],
) -> Array:
    """The published "log-likelihood": log of the *mean* likelihood of random pairs.

    Each draw is paired with one random point, and likelihoods, not their logarithms,
    are averaged. With noise of sd 3 the true function scores -2.364 by this measure;
    by the usual mean log density it scores -2.518.

    Args:
        key: Random key of the pairing.
        predictions: Predicted function values.
        y: Responses.

    Example:
        >>> y = 3.0 * jr.normal(jr.key(0), (100_000,))
        >>> predictions = jnp.zeros((1, 100_000)).repeat(2, 0)
        >>> every = jax.vmap(lambda k: log_mean_likelihood(k, predictions, y))
        >>> value = jnp.log(jnp.exp(every(jr.split(jr.key(1), 5000))).mean())
        >>> bool(abs(value + 2.364) < 0.02)
        True
    """
    draws, points = predictions.shape
    index = jr.randint(key, (draws,), 0, points)
    log_density = norm.logpdf(y[index], predictions[jnp.arange(draws), index], NOISE_SD)
    return logsumexp(log_density) - jnp.log(draws)


def log_predictive_density(
    predictions: Float[Array, "draws points"], y: Float[Array, " points"]
) -> Array:
    """Mean over points of the log posterior predictive density.

    Args:
        predictions: Predicted function values.
        y: Responses.

    Example:
        >>> round(float(log_predictive_density(jnp.zeros((2, 3)), jnp.zeros(3))), 3)
        -2.018
    """
    log_density = norm.logpdf(y, predictions, NOISE_SD)
    return jnp.mean(logsumexp(log_density, axis=0) - jnp.log(len(predictions)))


def _draw(key: PRNGKeyArray, guide: AbstractGuide, num_draws: int):
    return jax.vmap(guide.sample)(jr.split(key, num_draws))


def _published_score(key: PRNGKeyArray, guide: AbstractGuide, held_out) -> Array:
    """The same as ``log_mean_likelihood``, at the price of the pairs alone."""
    draw_key, index_key = jr.split(key)
    networks = _draw(draw_key, guide, _VALIDATION_DRAWS)
    index = jr.randint(index_key, (_VALIDATION_DRAWS,), 0, len(held_out["y"]))
    predictions = jax.vmap(predict)(networks, held_out["x"][index])
    log_density = norm.logpdf(held_out["y"][index], predictions, NOISE_SD)
    return logsumexp(log_density) - jnp.log(_VALIDATION_DRAWS)


def _predictive_score(key: PRNGKeyArray, guide: AbstractGuide, held_out) -> Array:
    networks = _draw(key, guide, _VALIDATION_DRAWS)
    predictions = jax.vmap(lambda network: predict(network, held_out["x"]))(networks)
    return log_predictive_density(predictions, held_out["y"])


VALIDATION_SCORES: dict[str, Score] = {
    "published": _published_score,
    "predictive": _predictive_score,
}


class AdditiveMetrics(eqx.Module):
    """Metrics on the test data, and the components of the first three features.

    Attributes:
        log_mean_likelihood: The published measure.
        log_predictive_density: The usual one.
        prediction_iqr: Mean interquartile range of the predicted function.
        iqr_coverage: Share of points whose true value lies inside that range.
        grid: Values of a feature.
        component_mean: Mean of each component, centred over the grid.
        component_low: Lower end of its 95 % interval.
        component_high: Upper end.
    """

    log_mean_likelihood: Array
    log_predictive_density: Array
    prediction_iqr: Array
    iqr_coverage: Array
    grid: Array
    component_mean: Array
    component_low: Array
    component_high: Array


def centred_truth(grid: Float[Array, " n"]) -> Float[Array, "3 n"]:
    """The true components of the first three features, with mean zero on the grid.

    Args:
        grid: Values of a feature.

    Example:
        >>> centred_truth(jnp.array([-1.0, 1.0]))[2].tolist()
        [1.0, -1.0]
    """
    truth = true_components(jnp.repeat(grid[:, None], NUM_FEATURES, axis=1))[:, :3].T
    return truth - jnp.mean(truth, axis=1, keepdims=True)


@eqx.filter_jit
def additive_metrics(
    keys: PRNGKeyArray,
    guides: AbstractGuide,
    test: dict[str, Float[Array, "fits ..."]],
    num_draws: int,
) -> AdditiveMetrics:
    """Metrics of fitted guides, one fit after the other.

    A constant can move from one component to another without changing a prediction,
    so components are compared with their mean over the grid taken off.

    Args:
        keys: One key a fit.
        guides: Fitted guides, arrays with a leading axis of fits.
        test: Test data, likewise.
        num_draws: Draws of each guide.

    Example:
        >>> from softcvi_experiments.appendix import additive_data, additive_guide
        >>> keys = jr.split(jr.key(0), 1)
        >>> test = jax.vmap(additive_data)(keys)["test"]
        >>> guides = eqx.filter_vmap(lambda key: additive_guide(key, 4))(keys)
        >>> additive_metrics(keys, guides, test, 10).component_low.shape
        (1, 3, 41)
    """
    arrays, static = eqx.partition(guides, eqx.is_array)
    grid = jnp.linspace(-REACH, REACH, _GRID)
    places = jnp.repeat(grid[:, None], NUM_FEATURES, axis=1)

    def one(fit) -> AdditiveMetrics:
        key, guide_arrays, data = fit
        guide = paramax.unwrap(eqx.combine(guide_arrays, static))
        draw_key, pair_key = jr.split(key)
        networks = _draw(draw_key, guide, num_draws)
        predictions = jax.lax.map(
            lambda network: predict(network, data["x"]), networks, batch_size=20
        )
        low, high = jnp.quantile(predictions, jnp.array([0.25, 0.75]), axis=0)
        curves = jax.vmap(lambda network: components(network, places)[:, :3].T)(
            networks
        )
        curves = curves - jnp.mean(curves, axis=2, keepdims=True)
        edges = jnp.quantile(curves, jnp.array([0.025, 0.975]), axis=0)
        inside = (low < data["truth"]) & (data["truth"] < high)
        return AdditiveMetrics(
            log_mean_likelihood(pair_key, predictions, data["y"]),
            log_predictive_density(predictions, data["y"]),
            jnp.mean(high - low),
            jnp.mean(inside),
            grid,
            jnp.mean(curves, axis=0),
            edges[0],
            edges[1],
        )

    return jax.lax.map(one, (keys, arrays, test))
