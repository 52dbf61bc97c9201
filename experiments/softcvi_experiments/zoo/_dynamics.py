"""Differential equations, integrated by Runge-Kutta steps of fixed size."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from softcvi_experiments.zoo._model import ZooModel
from softcvi_experiments.zoo._strategies import WhitenedNUTS


def _integrate(field, state, times, substeps):
    """States at equally spaced ``times[1:]`` by classical fourth-order steps."""
    size = (times[1] - times[0]) / substeps

    def small(carry, _):
        t, y = carry
        k1 = field(t, y)
        k2 = field(t + size / 2, y + size / 2 * k1)
        k3 = field(t + size / 2, y + size / 2 * k2)
        k4 = field(t + size, y + size * k3)
        return (t + size, y + size / 6 * (k1 + 2 * k2 + 2 * k3 + k4)), None

    def large(carry, _):
        carry, _ = jax.lax.scan(small, carry, None, length=substeps)
        return carry, carry[1]

    start = (jnp.asarray(times[0], state.dtype), state)
    return jax.lax.scan(large, start, None, length=len(times) - 1)[1]


# Hewitt (1921): pelts of hare and lynx, Hudson's Bay Company, 1900 to 1920, thousands.
_HARE = (
    "30.0 47.2 70.2 77.4 36.3 20.6 18.1 21.4 22.0 25.4 27.1 40.3 57.0 76.6 52.3 19.5 "
    "11.2 7.6 14.6 16.2 24.7"
)
_LYNX = (
    "4.0 6.1 9.8 35.2 59.4 41.7 19.0 13.0 8.3 9.1 7.4 8.0 12.3 19.5 45.7 51.1 29.7 "
    "15.8 9.7 10.1 8.6"
)
_PELTS = np.array([_HARE.split(), _LYNX.split()], dtype=float).T


def _predator_prey(pelts):
    rates = numpyro.sample(
        "rates",
        dist.TruncatedNormal(
            jnp.array([1.0, 0.05, 1.0, 0.05]),
            jnp.array([0.5, 0.05, 0.5, 0.05]),
            low=0.0,
        ).to_event(1),
    )
    initial = numpyro.sample("initial", dist.LogNormal(jnp.log(10.0), 1.0).expand([2]))
    sigma = numpyro.sample("sigma", dist.LogNormal(-1.0, 1.0).expand([2]))

    def field(_, state):
        hare, lynx = state
        return jnp.stack(
            [
                (rates[0] - rates[1] * lynx) * hare,
                (-rates[2] + rates[3] * hare) * lynx,
            ]
        )

    later = _integrate(field, initial, np.arange(21.0), substeps=10)
    states = jnp.concatenate([initial[None], later])
    # A wild parameter can push a population below zero by a too long step.
    numpyro.sample(
        "pelts", dist.LogNormal(jnp.log(jnp.maximum(states, 1e-10)), sigma), obs=pelts
    )


def _concentration(times, dose, absorption, volume, max_rate, half_rate):
    def field(t, c):
        uptake = jnp.exp(-absorption * t) * dose * absorption / volume
        return uptake - max_rate / volume * c / (half_rate + c)

    return _integrate(field, jnp.zeros_like(volume), times, substeps=4)


def _pharmacokinetics(times, dose, measured=None):
    absorption = numpyro.sample("absorption", dist.LogNormal(0.0, 1.0))
    volume = numpyro.sample("volume", dist.LogNormal(2.0, 1.0))
    max_rate = numpyro.sample("max_rate", dist.LogNormal(0.0, 1.0))
    half_rate = numpyro.sample("half_rate", dist.LogNormal(0.0, 1.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    c = _concentration(times, dose, absorption, volume, max_rate, half_rate)
    numpyro.sample(
        "measured", dist.LogNormal(jnp.log(jnp.maximum(c, 1e-10)), sigma), obs=measured
    )


def _pharmacokinetics_data():
    rng = np.random.default_rng(701)
    times = np.linspace(0.0, 10.0, 21)
    truth = (jnp.asarray(v) for v in (1.2, 9.0, 2.5, 0.8))
    c = np.asarray(_concentration(times, 30.0, *truth), np.float64)
    return times, 30.0, np.round(c * rng.lognormal(0.0, 0.15, 20), 4)


MODELS = (
    ZooModel(
        name="predator_prey",
        model=_predator_prey,
        kind="differential equation",
        split="development",
        description="Lotka-Volterra with the lynx and hare pelts: random starts meet "
        "local modes and stiff trajectories.",
        args=(_PELTS,),
        reference=WhitenedNUTS(
            {
                "rates": np.array([0.55, 0.028, 0.8, 0.024]),
                "initial": np.array([34.0, 6.0]),
                "sigma": np.array([0.25, 0.25]),
            },
        ),
    ),
    ZooModel(
        name="pharmacokinetics",
        model=_pharmacokinetics,
        kind="differential equation",
        split="report",
        description="One compartment, first-order absorption, Michaelis-Menten "
        "elimination: weakly identified, ridges.",
        args=_pharmacokinetics_data(),
        reference=WhitenedNUTS(
            {
                "absorption": 1.2,
                "volume": 9.0,
                "max_rate": 2.5,
                "half_rate": 0.8,
                "sigma": 0.2,
            },
            accept=0.95,
        ),
    ),
)
