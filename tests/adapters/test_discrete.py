import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi

numpyro = pytest.importorskip("numpyro")
import numpyro.distributions as dist  # noqa: E402

from softcvi.adapters import from_numpyro  # noqa: E402

POINTS = np.array([-2.1, -1.4, -0.2, 0.1, 0.4, 0.9, 1.8, 2.4])
WEIGHTS = np.array([0.3, 0.5, 0.2])
CENTRES = np.array([-1.5, 0.3, 2.0])
COUNTS = np.array([4, 5, 4, 1, 0, 4, 3, 4, 0, 1, 0, 1, 0, 1, 0, 0, 2, 1])


def test_mixture_memberships_are_those_of_enumeration():
    def model(x):
        with numpyro.plate("points", len(x)):
            z = numpyro.sample("z", dist.Categorical(jnp.asarray(WEIGHTS)))
            numpyro.sample("x", dist.Normal(jnp.asarray(CENTRES)[z], 0.8), obs=x)

    target = from_numpyro(model, POINTS)
    result = softcvi.fit(
        jax.random.key(0), target, steps=3000, learning_rate=0.05, progress=False
    )
    joint = WEIGHTS * np.exp(-0.5 * ((POINTS[:, None] - CENTRES) / 0.8) ** 2)
    exact = joint / joint.sum(axis=1, keepdims=True)
    fitted = jax.nn.softmax(result.posterior.guide.logits["z"])
    np.testing.assert_allclose(fitted, exact, atol=0.02)
    assert result.khat < 0.5
    draws = result.posterior.sample(jax.random.key(1), 4000)["z"]
    shares = np.stack([np.mean(np.asarray(draws) == k, axis=0) for k in range(3)], 1)
    np.testing.assert_allclose(shares, exact, atol=0.04)


def exact_change_point():
    """Posterior of the change point, with both rates integrated out."""
    from scipy.special import gammaln

    def evidence(counts):
        shape, rate = 2.0 + counts.sum(), 1.0 + len(counts)
        return gammaln(shape) - shape * np.log(rate)

    n = len(COUNTS)
    log_p = np.array(
        [evidence(COUNTS[: t + 1]) + evidence(COUNTS[t + 1 :]) for t in range(n - 1)]
    )
    weights = np.exp(log_p - log_p.max())
    return weights / weights.sum()


def change_point(counts):
    n = len(counts)
    early = numpyro.sample("early", dist.Gamma(2.0, 1.0))
    late = numpyro.sample("late", dist.Gamma(2.0, 1.0))
    switch = numpyro.sample("switch", dist.DiscreteUniform(0, n - 2))
    rate = jnp.where(jnp.arange(n) <= switch, early, late)
    numpyro.sample("counts", dist.Poisson(rate), obs=counts)


@pytest.mark.slow
def test_the_change_point_is_that_of_enumeration():
    target = from_numpyro(change_point, COUNTS)
    result = softcvi.fit(
        jax.random.key(0),
        target,
        objective=softcvi.SoftCVI(num_particles=16),
        steps=4000,
        learning_rate=0.03,
        progress=False,
    )
    exact = exact_change_point()
    for how in ("sample", "resample"):
        draws = getattr(result.posterior, how)(jax.random.key(1), 8000)["switch"]
        shares = np.bincount(np.asarray(draws), minlength=len(exact)) / 8000
        tolerance = 0.05 if how == "sample" else 0.025
        np.testing.assert_allclose(shares[: len(exact)], exact, atol=tolerance)


def test_a_discrete_posterior_can_be_saved(tmp_path):
    target = from_numpyro(change_point, COUNTS)
    guide = softcvi.guides.mixed(target)
    softcvi.Posterior(guide, target).save(tmp_path / "fit.softcvi")
    loaded = softcvi.load(tmp_path / "fit.softcvi")
    draws = loaded.sample(jax.random.key(0), 100)
    assert draws["switch"].dtype == jnp.int32
    assert np.all(np.asarray(draws["early"]) > 0)


def test_an_infinite_support_needs_a_guide():
    def model():
        numpyro.sample("n", dist.Poisson(3.0))

    with pytest.raises(ValueError, match=r"\['n'\] are discrete.*not known"):
        softcvi.fit(jax.random.key(0), from_numpyro(model), steps=1, progress=False)
