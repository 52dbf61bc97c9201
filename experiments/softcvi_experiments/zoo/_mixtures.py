"""Two-component mixtures of data, with and without an order on the means."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.distributions.transforms import OrderedTransform

from softcvi_experiments.zoo._model import Modes, ZooModel
from softcvi_experiments.zoo._strategies import SymmetrisedNUTS


def _likelihood(share, mean, sigma, y):
    weights = dist.Categorical(probs=jnp.stack([share, 1.0 - share]))
    numpyro.sample(
        "y", dist.MixtureSameFamily(weights, dist.Normal(mean, sigma)), obs=y
    )


def _ordered(y=None):
    share = numpyro.sample("share", dist.Beta(2.0, 2.0))
    base = dist.Normal(0.0, 2.0).expand([2]).to_event(1)
    ordered = dist.TransformedDistribution(base, OrderedTransform())
    mean = numpyro.sample("mean", ordered)
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0).expand([2]).to_event(1))
    with numpyro.plate("observation", len(y)):
        _likelihood(share, mean, sigma, y)


def _unordered(y=None):
    share = numpyro.sample("share", dist.Beta(2.0, 2.0))
    with numpyro.plate("component", 2):
        mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
    with numpyro.plate("observation", len(y)):
        _likelihood(share, mean, sigma, y)


def _data(seed, size, share, means, sigmas):
    rng = np.random.default_rng(seed)
    first = rng.random(size) < share
    return rng.normal(np.where(first, *means), np.where(first, *sigmas))


def _swap(draws):
    return {
        "share": 1.0 - draws["share"],
        "mean": draws["mean"][..., ::-1],
        "sigma": draws["sigma"],
    }


def _fold(draws):
    mirrored = _swap(draws)
    sorted_already = draws["mean"][..., 0] < draws["mean"][..., 1]
    return {
        site: np.where(
            sorted_already[..., None] if site == "mean" else sorted_already,
            value,
            mirrored[site],
        )
        for site, value in draws.items()
    }


MODELS = (
    ZooModel(
        name="mixture_ordered",
        model=_ordered,
        kind="mixture",
        split="development",
        description="Two overlapping components with ordered means and own scales.",
        args=(_data(401, 150, 0.35, (-1.5, 1.5), (0.7, 1.1)),),
    ),
    ZooModel(
        name="mixture_unordered",
        model=_unordered,
        kind="mixture",
        split="report",
        description="Two components without an order: label switching, two mirrored "
        "modes of weight one half.",
        args=(_data(402, 120, 0.3, (-2.0, 2.0), (1.0, 1.0)),),
        reference=SymmetrisedNUTS(_fold, _swap),
        modes=Modes("mean", np.array([[-2.0, 2.0], [2.0, -2.0]]), np.array([0.5, 0.5])),
    ),
)
