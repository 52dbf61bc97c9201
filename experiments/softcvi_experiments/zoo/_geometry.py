"""Targets with a known shape: funnel, banana, heavy tails, several modes."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from softcvi_experiments.zoo._model import Modes, ZooModel
from softcvi_experiments.zoo._strategies import DirectDraws


def _funnel():
    v = numpyro.sample("v", dist.Normal(0.0, 3.0))
    with numpyro.plate("dimension", 9):
        numpyro.sample("x", dist.Normal(0.0, jnp.exp(v / 2.0)))


def _funnel_draws(rng, size):
    v = rng.normal(0.0, 3.0, size)
    return {"v": v, "x": rng.normal(size=(size, 9)) * np.exp(v / 2.0)[:, None]}


def _banana():
    x = numpyro.sample("x", dist.Normal(0.0, 10.0))
    numpyro.sample("y", dist.Normal(0.03 * (x**2 - 100.0), 1.0))


def _banana_draws(rng, size):
    x = rng.normal(0.0, 10.0, size)
    return {"x": x, "y": rng.normal(0.03 * (x**2 - 100.0), 1.0)}


_TAIL_CENTRE = np.array([10.0, -3.0, 0.0, 0.5, 100.0])
_TAIL_SCALE = np.diag([10.0, 1.0, 0.1, 1.0, 30.0]) @ np.linalg.cholesky(
    0.6 * np.ones((5, 5)) + 0.4 * np.eye(5)
)


def _heavy_tails():
    numpyro.sample("x", dist.MultivariateStudentT(5.0, _TAIL_CENTRE, _TAIL_SCALE))


def _heavy_tails_draws(rng, size):
    z = rng.normal(size=(size, 5)) @ _TAIL_SCALE.T
    return {"x": _TAIL_CENTRE + z / np.sqrt(rng.chisquare(5.0, (size, 1)) / 5.0)}


def _mixture(centres, scales, weights):
    """A mixture of isotropic normals, as a model and as a sampler."""

    def model():
        components = dist.Normal(centres, scales[:, None]).to_event(1)
        mode = dist.Categorical(jnp.array(weights))
        numpyro.sample("x", dist.MixtureSameFamily(mode, components))

    def draws(rng, size):
        which = rng.choice(len(weights), size, p=weights)
        noise = rng.normal(size=(size, centres.shape[1])) * scales[which, None]
        return {"x": centres[which] + noise}

    return model, draws


_TWO = np.array([[-4.0, 0.0], [4.0, 2.0]])
_TWO_WEIGHTS = np.array([0.7, 0.3])
_bimodal, _bimodal_draws = _mixture(_TWO, np.array([1.0, 0.7]), _TWO_WEIGHTS)

_FOUR = 5.0 * np.array(
    [
        [1.0, 1.0, 0.0, 0.0, 0.0],
        [-1.0, 1.0, 0.5, 0.0, 0.0],
        [1.0, -1.0, 0.0, 0.5, 0.0],
        [-1.0, -1.0, 0.0, 0.0, 0.5],
    ]
)
_FOUR_WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])
_four_modes, _four_modes_draws = _mixture(
    _FOUR, np.array([1.0, 0.8, 1.2, 1.0]), _FOUR_WEIGHTS
)

MODELS = (
    ZooModel(
        name="funnel",
        model=_funnel,
        kind="geometry",
        split="development",
        description="Neal's funnel in ten dimensions; x is scored as asinh(x) because "
        "its standard deviation rests on the far tail of v.",
        reference=DirectDraws(_funnel_draws),
        scales={"x": "asinh"},
    ),
    ZooModel(
        name="banana",
        model=_banana,
        kind="geometry",
        split="report",
        description="Haario's banana: a curved ridge of width 1 and length 40.",
        reference=DirectDraws(_banana_draws),
    ),
    ZooModel(
        name="heavy_tails",
        model=_heavy_tails,
        kind="heavy tails",
        split="development",
        description="Multivariate Student-t with 5 degrees of freedom and scales "
        "from 0.1 to 30.",
        reference=DirectDraws(_heavy_tails_draws, size=1_000_000),
    ),
    ZooModel(
        name="bimodal",
        model=_bimodal,
        kind="multimodal",
        split="development",
        description="Two normals eight standard deviations apart, weights 0.7, 0.3.",
        reference=DirectDraws(_bimodal_draws),
        modes=Modes("x", _TWO, _TWO_WEIGHTS),
    ),
    ZooModel(
        name="four_modes",
        model=_four_modes,
        kind="multimodal",
        split="report",
        description="Four normals in five dimensions, weights 0.4, 0.3, 0.2, 0.1.",
        reference=DirectDraws(_four_modes_draws),
        modes=Modes("x", _FOUR, _FOUR_WEIGHTS),
    ),
)
