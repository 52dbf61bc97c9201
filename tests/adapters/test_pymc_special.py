"""Special functions of PyMC's densities that PyTensor's JAX part lacks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from softcvi.adapters import from_pymc
from softcvi.adapters.pymc._special import erfcx

pm = pytest.importorskip("pymc")
# Says how PyTensor was installed; nothing here needs to be fast.
pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link")


def test_the_scaled_complementary_error_function():
    x = np.linspace(-5.0, 60.0, 2001)
    with jax.enable_x64(True):
        values = erfcx(x)
        slopes = jax.vmap(jax.grad(erfcx))(x)
    np.testing.assert_allclose(values, special.erfcx(x), rtol=1e-12)
    exact = 2 * x * special.erfcx(x) - 2 / np.sqrt(np.pi)
    np.testing.assert_allclose(slopes, exact, rtol=1e-7, atol=1e-12)
    x = np.array([-1e3, -3.0, 0.4, 0.5, 3.9, 4.1, 1e4], np.float32)
    np.testing.assert_allclose(erfcx(x), special.erfcx(x), rtol=2e-5)


@pytest.mark.parametrize("kind", ["Censored", "Truncated", "TruncatedNormal"])
def test_censored_and_truncated_normals_have_the_density_of_pymc(kind):
    y = np.array([-1.0, 0.2, 1.5, 3.0])
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu", 0, 3), pm.HalfNormal("sigma", 3)
        if kind == "TruncatedNormal":
            pm.TruncatedNormal("y", mu, sigma, lower=-1.0, upper=3.0, observed=y)
        else:
            base = pm.Normal.dist(mu, sigma)
            getattr(pm, kind)("y", base, lower=-1.0, upper=3.0, observed=y)
    target = from_pymc(model)
    logp = model.compile_logp()
    for mu, log_sigma in ((0.0, 0.0), (-4.0, 0.3), (9.0, 0.5)):
        expected = logp({"mu": mu, "sigma_log__": log_sigma})
        u = {"mu": jnp.asarray(mu), "sigma": jnp.asarray(log_sigma)}
        np.testing.assert_allclose(target.log_density(u), expected, rtol=1e-4)


def test_censored_gamma_times_have_second_derivatives():
    """JAX has only one of the incomplete gamma function."""
    with pm.Model() as model:
        shape = pm.HalfNormal("shape", 2)
        times = pm.Gamma.dist(shape, 1.0)
        pm.Censored("t", times, lower=None, upper=1.5, observed=[0.4, 1.5, 1.1, 1.5])
    target = from_pymc(model)
    assert target.has_gradient

    def along(u):
        return target.log_density({"shape": u})

    slope = jax.grad(along)
    expected = (slope(0.3 + 1e-2) - slope(0.3 - 1e-2)) / 2e-2
    np.testing.assert_allclose(jax.hessian(along)(0.3), expected, rtol=0.02)
