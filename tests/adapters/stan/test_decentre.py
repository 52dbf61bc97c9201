"""Hierarchies in standardised coordinates, without compiling a program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from softcvi_experiments import stan

import softcvi
from softcvi.adapters.stan import AbstractProgram, StanTarget
from softcvi.adapters.stan._decentre import Hierarchy as Names
from softcvi.adapters.stan._decentre import hierarchies, placed
from softcvi.adapters.stan._source import as_source
from softcvi.adapters.stan._stanc import translate
from tests.adapters.stan.programs import Hierarchy

DATA = np.array([0.5, 1.5, 1.0])


@pytest.fixture
def program():
    return Hierarchy(DATA)


@pytest.fixture
def target(program):
    # The location has two parts, which is no location for one parameter.
    found = placed((Names("theta", "3", "tau"),), program, {})
    return StanTarget(program, standardised=found)


def test_the_density_is_that_of_other_coordinates(target):
    plain = StanTarget(target.program)
    with jax.enable_x64(True):
        u = {"unconstrained": jnp.array([0.3, -0.2, 0.7, 1.1])}
        x, log_det = target.space.to_model_and_log_det(u)
        np.testing.assert_allclose(
            x["unconstrained"], [0.3, -0.2, 0.7, 3 + 1.1 * np.exp(0.7)]
        )
        np.testing.assert_allclose(log_det, 0.7)
        np.testing.assert_allclose(
            target.log_density(u), plain.log_density(x) + log_det
        )
        back, inverse = target.space.from_model_and_log_det(target.describe(x))
        np.testing.assert_allclose(back["unconstrained"], u["unconstrained"])
        np.testing.assert_allclose(inverse, -log_det)
        gradient = jax.grad(target.log_density)(u)["unconstrained"]
        step = {"unconstrained": u["unconstrained"].at[2].add(1e-6)}
        slope = (target.log_density(step) - target.log_density(u)) / 1e-6
        np.testing.assert_allclose(gradient[2], slope, rtol=1e-4)


def test_what_the_data_determine_goes_back_to_its_own_coordinates(target):
    wide, narrow = ({"unconstrained": np.full(4, s)} for s in (0.9, 0.1))
    assert target.space.decentred == ("theta",)
    assert target.recentred(wide) is None
    assert target.recentred(narrow).space.decentred == ()
    assert target.in_space(target.space.stored()).space.decentred == ("theta",)


def test_draws_are_those_of_the_program_also_from_a_file(target, tmp_path):
    posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
    draws = posterior.sample(jax.random.key(0), 400)
    assert set(draws) == {"mu", "tau", "theta"}
    standard = (draws["theta"] - 3) / draws["tau"]
    # The guide is normal in the standardised coordinate, whatever the scale is.
    tau = np.log(draws["tau"])
    assert abs(np.corrcoef(tau, np.log(np.abs(standard)))[0, 1]) < 0.2
    assert np.corrcoef(tau, np.log(np.abs(draws["theta"] - 3)))[0, 1] > 0.4
    posterior.save(tmp_path / "fit.softcvi")
    again = softcvi.load(tmp_path / "fit.softcvi", target=target)
    np.testing.assert_allclose(
        again.sample(jax.random.key(0), 400)["theta"], draws["theta"], rtol=1e-5
    )


def test_parameters_that_are_not_where_they_seem_stay_as_they_are(program):
    assert placed((Names("theta", "mu", "tau"),), program, {}) == ()
    assert placed((Names("tau", "0", "theta"),), program, {}) == ()
    # Types that say otherwise: the sizes do not add up.
    assert placed((Names("theta", "0", "tau"),), program, {"mu": "simplex"}) == ()


class Precision(AbstractProgram):
    """A precision below four, and a scale made of it."""

    size = 3
    names = (("b.1", "b.2", "tau"), ("sigma",), ())

    def log_density(self, rows):
        return -0.5 * np.sum(rows**2, axis=1)

    def log_density_and_gradient(self, rows):
        return self.log_density(rows), -rows

    def constrain(self, rows, seeds):
        tau = 4 / (1 + np.exp(-rows[:, 2]))
        return np.column_stack([rows[:, :2], tau, 3 / np.sqrt(tau)])

    def unconstrain(self, parameters):
        raise NotImplementedError


def test_scales_are_powers_of_parameters_with_or_without_bounds():
    program = Precision()
    (of_sigma,) = placed((Names("b", "0", "sigma"),), program, {})
    (of_tau,) = placed((Names("b", "-2.5", "tau"),), program, {})
    assert of_tau.offset == -2.5
    with jax.enable_x64(True):
        u = jnp.array([0.3, -0.4, 0.8])
        _, _, tau, sigma = program.constrain(np.asarray(u)[None], None)[0]
        np.testing.assert_allclose(of_tau.scale.log(u), np.log(tau), rtol=1e-7)
        np.testing.assert_allclose(of_sigma.scale.log(u), np.log(sigma), rtol=1e-7)
        x, log_det = of_sigma.forward(u)
        np.testing.assert_allclose(x[:2], sigma * u[:2], rtol=1e-7)
        np.testing.assert_allclose(log_det, 2 * np.log(sigma), rtol=1e-7)
    assert placed((Names("b", "0", "b"),), program, {}) == ()
    assert placed((Names("b", "absent", "tau"),), program, {}) == ()
    assert placed((Names("b", "0", "absent"),), program, {}) == ()


def test_hierarchies_in_the_text_of_programs():
    pytest.importorskip("httpstan")
    found = translate(as_source(stan.path("radon_centred"))).hierarchies
    assert found == (
        Names("alpha", "mu_alpha", "sigma_alpha"),
        Names("beta", "mu_beta", "sigma_beta"),
    )
    assert translate(as_source(stan.path("eight_schools_noncentred"))).hierarchies == ()


@pytest.mark.parametrize(
    "statement",
    [
        "x ~ normal(mu, 2);",
        "x ~ normal(x0, tau);",
        "y ~ normal(mu, tau);",
        "x ~ gamma(mu, tau);",
    ],
)
def test_statements_that_are_no_hierarchies(statement):
    block = "parameters {\n real mu;\n real<lower=0> tau;\n vector[3] x;\n}\n"
    assert hierarchies(f"{block}model {{\n  {statement}\n}}\n") == ()
    loop = "for (i in 1 : 3) {\n    x[i] ~ student_t(4, mu, tau);\n  }"
    assert hierarchies(f"{block}model {{\n  {loop}\n}}\n") == (Names("x", "mu", "tau"),)
