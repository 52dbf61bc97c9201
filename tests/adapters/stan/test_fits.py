import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.adapters import from_bridgestan, from_pystan
from tests.adapters.conftest import EFFECTS, ERRORS, assert_like_nuts
from tests.adapters.stan.programs import EIGHT_SCHOOLS, needs_compiler

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def target():
    needs_compiler()
    data = {"J": 8, "y": EFFECTS, "sigma": ERRORS}
    return from_pystan(EIGHT_SCHOOLS, data)


def test_density_names_and_constrained_values(target, schools_target):
    theta = jnp.linspace(-1, 1, 10)
    other = {"mu": theta[0], "tau": theta[1], "theta_base": theta[2:]}
    zeros = jnp.zeros(10)
    origin = {"mu": zeros[0], "tau": zeros[1], "theta_base": zeros[2:]}
    # Constants are another matter: a half-Cauchy is twice a Cauchy.
    ours = target.log_density({"unconstrained": theta}) - target.log_density(
        {"unconstrained": zeros}
    )
    theirs = schools_target.log_density(other) - schools_target.log_density(origin)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)
    x = target.describe({"unconstrained": theta})
    assert set(x) == {"mu", "tau", "theta_tilde", "theta"}
    np.testing.assert_allclose(x["tau"], np.exp(theta[1]), rtol=1e-5)
    np.testing.assert_allclose(
        x["theta"], theta[0] + np.exp(theta[1]) * theta[2:], rtol=1e-4
    )


def test_eight_schools_fits(target):
    result = softcvi.fit(jax.random.key(0), target, steps=4000, progress=False)
    assert result.verdict.trusted
    assert_like_nuts(result.posterior.resample(jax.random.key(1), 5000))


class Rejecting:
    """What a bridgestan.StanModel offers, for a positive parameter and a matrix."""

    def param_unc_num(self):
        return 5

    def param_names(self, include_tp=False, include_gq=False):
        return ["sigma", "m.1.1", "m.2.1", "m.1.2", "m.2.2"]

    def log_density(self, theta_unc, propto=True, jacobian=True):
        if theta_unc[1] > 100:
            raise RuntimeError("Exception: rejecting the point")
        assert jacobian
        return float(-0.5 * np.sum(theta_unc**2))

    def log_density_gradient(self, theta_unc, propto=True, jacobian=True):
        return self.log_density(theta_unc, propto, jacobian), -theta_unc

    def param_constrain(self, theta_unc, include_tp=False, include_gq=False):
        return np.concatenate([np.exp(theta_unc[:1]), theta_unc[1:]])


def test_bridgestan_models_by_their_interface():
    target = from_bridgestan(Rejecting())
    theta = jnp.arange(5.0)
    np.testing.assert_allclose(target.log_density({"unconstrained": theta}), -15.0)
    assert target.log_density({"unconstrained": 200 + theta}) == -jnp.inf
    x = jax.vmap(target.describe)({"unconstrained": jnp.stack([theta, theta])})
    np.testing.assert_allclose(x["sigma"], 1.0)
    np.testing.assert_allclose(x["m"][0], [[1, 3], [2, 4]])
    result = softcvi.fit(
        jax.random.key(0), target, steps=800, learning_rate=0.02, progress=False
    )
    draws = result.posterior.sample(jax.random.key(1), 2000)
    np.testing.assert_allclose(np.log(draws["sigma"]).std(), 1.0, atol=0.15)


class Failing(Rejecting):
    """The same with a transformed and a generated quantity, which fail far out."""

    def param_names(self, include_tp=False, include_gq=False):
        names = super().param_names()
        return names + ["twice"] * include_tp + ["root"] * include_gq

    def new_rng(self, seed):
        return seed

    def param_constrain(self, theta_unc, include_tp=False, include_gq=False, rng=0):
        x = super().param_constrain(theta_unc)
        if (include_tp and x[1] < -9) or (include_gq and x[1] < 0):
            raise RuntimeError("Exception: negative")
        more = [2 * x[1]] * include_tp + [abs(x[1]) ** 0.5] * include_gq
        return np.concatenate([x, more])


def test_bridgestan_parameters_outlive_quantities_that_fail():
    program = from_bridgestan(Failing()).program
    rows = np.zeros((3, 5))
    rows[:, 1] = 4.0, -4.0, -16.0
    out = program.constrain(rows, np.zeros(3, np.uint64))
    np.testing.assert_allclose(out[:, 1], rows[:, 1])
    np.testing.assert_array_equal(out[:, 5:], [[8, 2], [-8, np.nan], [np.nan, np.nan]])
    assert program.rejections == 2


def test_a_program_with_a_mistake_is_refused():
    pytest.importorskip("httpstan")
    with pytest.raises(ValueError, match="Stan compiler refused"):
        from_pystan("parameters { real x } model { }")
