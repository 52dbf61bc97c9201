"""Eight schools, as users of each package write it, and what NUTS says about it."""

import jax
import numpy as np
import pytest

import softcvi

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

# NumPyro's NUTS on the non-centred model in double precision, target acceptance 0.95,
# 4 chains of 25,000 draws after 2,000 of warm-up, seed 0.
NUTS = {
    "mu": (4.381, 3.327),
    "tau": (3.598, 3.237),
    "theta": (
        [6.197, 4.944, 3.943, 4.72, 3.601, 4.027, 6.295, 4.874],
        [5.596, 4.667, 5.249, 4.768, 4.673, 4.791, 5.079, 5.301],
    ),
}


def assert_like_nuts(draws):
    """Means within 0.1 posterior sd of the long run, sds within 10 %."""
    for name, (mean, sd) in NUTS.items():
        values = np.asarray(draws[name], np.float64)
        mean, sd = np.asarray(mean), np.asarray(sd)
        np.testing.assert_allclose(
            (values.mean(0) - mean) / sd, 0.0, atol=0.1, err_msg=name
        )
        np.testing.assert_allclose(values.std(0) / sd, 1.0, atol=0.1, err_msg=name)


@pytest.fixture(scope="session")
def non_centred():
    numpyro = pytest.importorskip("numpyro")
    dist = numpyro.distributions

    def model(errors, effects=None):
        mu = numpyro.sample("mu", dist.Normal(0, 5))
        tau = numpyro.sample("tau", dist.HalfCauchy(5))
        with numpyro.plate("school", len(errors)):
            theta_base = numpyro.sample("theta_base", dist.Normal(0, 1))
            theta = numpyro.deterministic("theta", mu + tau * theta_base)
            numpyro.sample("obs", dist.Normal(theta, errors), obs=effects)

    return model


@pytest.fixture(scope="session")
def schools_target(non_centred):
    return softcvi.adapters.from_numpyro(non_centred, ERRORS, effects=EFFECTS)


@pytest.fixture(scope="session")
def schools_fit(schools_target):
    return softcvi.fit(jax.random.key(0), schools_target, steps=4000, progress=False)
