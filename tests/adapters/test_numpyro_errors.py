import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi

numpyro = pytest.importorskip("numpyro")
import numpyro.distributions as dist  # noqa: E402

from softcvi.adapters import from_numpyro, numpyro_guide  # noqa: E402


def model(y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    numpyro.sample("y", dist.Normal(mu, sigma), obs=y)


def test_a_misspelt_or_missing_site_in_a_guide_is_named():
    target = from_numpyro(model, jnp.ones(3))

    def guide(y):
        numpyro.sample("mew", dist.Normal(0, 1))
        numpyro.sample("sigma", dist.HalfNormal(1))

    with pytest.raises(ValueError, match=r"no site \['mu'\].*has \['mew'\]"):
        numpyro_guide(guide, target)
    from flowjax.distributions import Normal

    sites = softcvi.guides.SiteGuide({"mew": Normal(0.0), "sigma": Normal(0.0)})
    with pytest.raises(ValueError, match=r"missing \['mu'\] and unknown \['mew'\]"):
        softcvi.fit(jax.random.key(0), target, sites, steps=1, progress=False)


def test_an_observed_nan_is_named_unless_it_is_masked():
    y = jnp.array([0.0, jnp.nan, 1.0])
    with pytest.raises(ValueError, match=r"observed site 'y' has 1 NaN among 3"):
        from_numpyro(model, y)

    def masked(y):
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        with numpyro.handlers.mask(mask=~jnp.isnan(y)):
            numpyro.sample("y", dist.Normal(mu, 1), obs=y)

    assert np.isfinite(from_numpyro(masked, y).log_density({"mu": jnp.zeros(())}))


def test_a_shape_that_depends_on_a_latent_names_the_site():
    def shape():
        n = numpyro.sample("n", dist.Poisson(3.0))
        numpyro.sample("x", dist.Normal(0, 1).expand([int(n)]))

    def log_density():
        target = from_numpyro(shape)
        jax.jit(target.log_density)(target.like)

    with pytest.raises(ValueError, match=r"after site 'n'.*depends on a sampled"):
        log_density()


def test_an_unsupported_constraint_names_the_site():
    class Odd(dist.constraints.Constraint):
        def __call__(self, x):
            return x == x

    class OddDistribution(dist.Normal):
        support = Odd()

    def odd():
        numpyro.sample("x", OddDistribution(0, 1))

    with pytest.raises(ValueError, match=r"site 'x' has the support.*space='model'"):
        from_numpyro(odd)
    assert from_numpyro(odd, space="model").like["x"].shape == ()


def test_an_error_inside_the_model_says_where():
    def broken():
        numpyro.sample("mu", dist.Normal(0, 1))
        raise KeyError("oops")

    with pytest.raises(KeyError) as caught:
        from_numpyro(broken)
    assert "after site 'mu'" in "".join(caught.value.__notes__)


def test_no_latent_site():
    def nothing():
        numpyro.sample("y", dist.Normal(0, 1), obs=1.0)

    with pytest.raises(ValueError, match="no latent site"):
        from_numpyro(nothing)


def test_an_absent_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "numpyro", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'softcvi\[numpyro\]'"):
        from_numpyro(model)
