"""Hierarchies in standardised coordinates, without compiling a program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from softcvi_experiments import stan

import softcvi
from softcvi.adapters.stan import AbstractProgram, StanTarget
from softcvi.adapters.stan._hierarchies import Hierarchy as Names
from softcvi.adapters.stan._hierarchies import hierarchies
from softcvi.adapters.stan._placed import placed
from softcvi.adapters.stan._stanc import as_source, translate
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


def test_coordinates_follow_what_the_data_know(target):
    mean, wide, narrow = ({"unconstrained": jnp.full(4, s)} for s in (0.5, 1.0, 0.6))
    assert target.standardised["unconstrained"].tolist() == [False] * 3 + [True]
    assert target.recentred(mean, wide) is None
    informed = target.recentred(mean, narrow)
    assert informed.standardised is None
    stored = target.in_space(informed.space.stored())
    plain = StanTarget(target.program)
    for each in (informed, stored):
        u = {"unconstrained": jnp.array([0.5, 0.5, 0.5, 0.0])}
        x, log_det = each.space.to_model_and_log_det(u)
        tau = np.exp(0.5)
        np.testing.assert_allclose(x["unconstrained"][3], 3 + 0.5 * tau, rtol=1e-6)
        np.testing.assert_allclose(log_det, np.log(0.6 * tau), rtol=1e-5)
        np.testing.assert_allclose(
            each.log_density(u), plain.log_density(x) + log_det, rtol=1e-5
        )
        back, inverse = each.space.from_model_and_log_det(x)
        np.testing.assert_allclose(back["unconstrained"], u["unconstrained"], atol=1e-6)
        np.testing.assert_allclose(inverse, -log_det, rtol=1e-5)


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
    np.testing.assert_allclose(of_tau.location.offsets, -2.5)
    with jax.enable_x64(True):
        u = jnp.array([0.3, -0.4, 0.8])
        _, _, tau, sigma = program.constrain(np.asarray(u)[None], None)[0]
        np.testing.assert_allclose(of_tau.prior(u).scale, [tau], rtol=1e-7)
        np.testing.assert_allclose(of_sigma.prior(u).scale, [sigma], rtol=1e-7)
        x, log_det = of_sigma.forward(u)
        np.testing.assert_allclose(x[:2], sigma * u[:2], rtol=1e-7)
        np.testing.assert_allclose(log_det, 2 * np.log(sigma), rtol=1e-7)
    assert placed((Names("b", "0", "b"),), program, {}) == ()
    assert placed((Names("b", "absent", "tau"),), program, {}) == ()
    assert placed((Names("b", "0", "absent"),), program, {}) == ()


def test_hierarchies_in_the_text_of_programs():
    pytest.importorskip("httpstan")
    found = translate(as_source(stan.path("radon_centred"))).hierarchies
    assert Names("alpha", "mu_alpha", "sigma_alpha") in found
    assert Names("beta", "mu_beta", "sigma_beta") in found
    (growth,) = (
        each
        for each in translate(as_source(stan.path("growth_curves"))).hierarchies
        if each.name == "beta"
    )
    assert growth == Names("beta", "mu_beta", "sqrt(variance_beta)")


class Levels(AbstractProgram):
    """Members around lines, lines around a mean, and a positive member."""

    size = 9
    names = (("m", "a.1", "a.2", "x.1", "x.2", "x.3", "p", "s", "t"), ("v",), ())

    def log_density(self, rows):
        return -0.5 * np.sum(rows**2, axis=1)

    def log_density_and_gradient(self, rows):
        return self.log_density(rows), -rows

    def constrain(self, rows, seeds):
        out = np.column_stack([rows, np.exp(rows[:, 8])])
        out[:, 6:9] = np.exp(rows[:, 6:9])
        out[:, 9] = out[:, 8] ** 2
        return out

    def unconstrain(self, parameters):
        raise NotImplementedError


def _levels(*statements):
    declared = "real m;\n vector[2] a;\n vector[3] x;\n real<lower=0> p;"
    scales = "real<lower=0> s;\n real<lower=0> t;"
    block = f"parameters {{\n {declared}\n {scales}\n}}\n"
    body = "\n".join(f"  {statement}" for statement in statements)
    found = hierarchies(f"{block}model {{\n{body}\n}}\n")
    data = {"u": [1.0, 2.0, 4.0], "n": 3, "W": np.arange(6.0).reshape(3, 2)}
    return placed(found, Levels(), {}, data)


U = np.array([0.5, -0.3, 0.7, 0.1, 0.2, 0.3, 0.4, -0.6, 0.9])
T, S, A, X = np.exp(0.9), np.exp(-0.6), np.array([-0.3, 0.7]), np.array([1.0, 2, 4])


@pytest.mark.parametrize(
    ("statement", "location", "scale"),
    [
        ("x ~ normal(a[1] + a[2] * u, t);", A[0] + A[1] * X, T),
        ("x ~ normal(10 * m, sqrt(v));", 5.0, T),
        ("x ~ normal(W * a, s * t);", np.arange(6.0).reshape(3, 2) @ A, S * T),
        ("for (i in 1 : n)\n    x[i] ~ cauchy(m - u[i], s);", 0.5 - X, S),
        ("x ~ student_t(4, rep_vector(m, n), 2 / t);", 0.5, 2 / T),
        ("x ~ normal(m, t * u .* u);", 0.5, T * X**2),
        ("target += normal_lpdf(x | m, t);", 0.5, T),
        ("p ~ lognormal(a[2], t);", 0.7, T),
    ],
)
def test_locations_and_scales_may_be_expressions(statement, location, scale):
    with jax.enable_x64(True):
        (found,) = _levels(statement)
        u = jnp.asarray(U)
        prior = found.prior(u)
        np.testing.assert_allclose(prior.location, location + 0 * prior.location)
        np.testing.assert_allclose(prior.scale, scale + 0 * prior.scale)
        x, log_det = found.forward(u)
        back, inverse = found.inverse(x)
        np.testing.assert_allclose(back, U)
        np.testing.assert_allclose(inverse, -log_det)


def test_levels_are_standardised_from_the_top():
    found = _levels("x ~ normal(a[1], s);", "a ~ normal(m, t);")
    assert [each.name for each in found] == ["a", "x"]
    target = StanTarget(Levels(), standardised=found)
    with jax.enable_x64(True):
        x, log_det = target.space.to_model_and_log_det({"unconstrained": jnp.array(U)})
        a = 0.5 + T * A
        np.testing.assert_allclose(x["unconstrained"][1:3], a)
        np.testing.assert_allclose(x["unconstrained"][3:6], a[0] + S * U[3:6])
        back, inverse = target.space.from_model_and_log_det(x)
        np.testing.assert_allclose(back["unconstrained"], U)
        np.testing.assert_allclose(inverse, -log_det)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "for (i in 2 : n) {\n    x[i] ~ normal(x[i - 1], t);\n  }",
            [0.1, 0.1 + T * 0.2, 0.1 + T * 0.5],
        ),
        (
            "x[2 : n] ~ student_t(3, m + x[1 : n - 1], t * u[2 : n]);",
            [0.1, 0.6 + 2 * T * 0.2, 1.1 + 2 * T * 0.2 + 4 * T * 0.3],
        ),
        (
            "for (i in 3 : n) {\n    x[i] ~ normal(-sum(x[i - 2 : i - 1]), t);\n  }",
            [0.1, 0.2, -0.3 + T * 0.3],
        ),
        (
            "target += normal_lpdf(x[ : 2] | x[2 : ], t);",  # the last is the first
            [0.3 + T * 0.3, 0.3 + T * 0.2, 0.3],
        ),
        ("x[1] ~ normal(m, t);\n  x[2 : 3] ~ normal(0, s);", [0.1, S * 0.2, S * 0.3]),
        ("x[2 : 3] ~ normal(0, s);\n  x[1] ~ normal(m, t);", [0.1, S * 0.2, S * 0.3]),
    ],
)
def test_random_walks_are_standardised_by_their_steps(statement, expected):
    with jax.enable_x64(True):
        (found,) = _levels(statement)
        x, log_det = found.forward(jnp.asarray(U))
        np.testing.assert_allclose(x[3:6], expected)
        jacobian = jax.jacobian(lambda u: found.forward(u)[0])(jnp.asarray(U))
        np.testing.assert_allclose(log_det, np.linalg.slogdet(jacobian)[1], atol=1e-12)
        back, inverse = found.inverse(x)
        np.testing.assert_allclose(back, U, atol=1e-12)
        np.testing.assert_allclose(inverse, -log_det)


def test_data_choose_between_a_walk_and_its_steps():
    found = _levels("x[2 : n] ~ normal(x[1 : n - 1], t);")
    target = StanTarget(Levels(), standardised=found)
    mean, wide, narrow = ({"unconstrained": jnp.full(9, s)} for s in (0.5, 1.0, 0.1))
    assert target.recentred(mean, wide) is None
    assert target.recentred(mean, narrow).space.decentred == ()


@pytest.mark.parametrize(
    "statement",
    [
        "x ~ normal(m, 2);",  # no scale to follow
        "x ~ normal(x0, t);",  # a variable of the model block
        "y ~ normal(m, t);",
        "x ~ gamma(m, t);",
        "x ~ normal(m * a[1], t);",  # not linear
        "x ~ normal(m, s + t);",
        "x ~ normal(0, exp(m) + a[1]);",  # may be negative
        "p ~ normal(m, t);",  # its logarithm is what is fitted
        "x ~ normal(f(m), t);",
        "x ~ normal(m', t);",
        "for (i in 2 : n) {\n    x[i] ~ normal(m * x[i - 1], t);\n  }",
        "for (i in 1 : n) {\n    x[i] ~ normal(x[n + 1 - i], t);\n  }",  # no first one
        "for (i in 1 : k) {\n    x[i] ~ normal(x[i + 1], t);\n  }",
        "x[2 : n] ~ normal(x[1 : n], t);",
        "x ~ normal(u[{1, 2}], t);",
    ],
)
def test_statements_that_are_no_hierarchies(statement):
    assert _levels(statement) == ()


class Crossed(AbstractProgram):
    """Measurements of ``a[i] + b[j]``, which tell neither level, in NumPy."""

    size = 8
    names = (("mu_a", "mu_b", "s", "t", "a.1", "a.2", "b.1", "b.2"), (), ())

    def log_density(self, rows):
        raise NotImplementedError

    def log_density_and_gradient(self, rows):
        raise NotImplementedError

    def constrain(self, rows, seeds):
        return np.concatenate([rows[:, :2], np.exp(rows[:, 2:4]), rows[:, 4:]], axis=1)

    def unconstrain(self, parameters):
        raise NotImplementedError


def test_members_that_go_with_their_location_are_measured_relative_to_it(tmp_path):
    program = Crossed()
    names = (Names("a", "10 * mu_a", "s"), Names("b", "10 * mu_b", "t"))
    target = StanTarget(program, standardised=placed(names, program, {}))
    rng = np.random.default_rng(0)
    draws = rng.normal(0, 0.1, (100, 8))
    narrow = {"unconstrained": jnp.full(8, 0.3)}
    mean = {"unconstrained": jnp.full(8, 0.1)}
    # Members that are known, whatever their locations are.
    measured = np.array(draws)
    measured[:, 4:] = (0.1 * draws[:, 4:] - 10 * draws[:, [0, 0, 1, 1]]) / np.exp(
        draws[:, [2, 2, 3, 3]]
    )
    known = target.recentred(mean, narrow, {"unconstrained": jnp.asarray(measured)})
    assert not any(each.is_relative for each in known.space.informed.values())
    # Both levels are unknown, and only their sum is known.
    draws[:, 1] = -rng.normal(0, 1, 100)
    draws[:, 0] = -draws[:, 1]
    ridge = target.recentred(mean, narrow, {"unconstrained": jnp.asarray(draws)})
    assert [each.is_relative for each in ridge.space.informed.values()] == [True] * 2
    u = jnp.arange(8.0) / 4
    x, log_det = ridge.space.to_model_and_log_det({"unconstrained": u})
    back, inverse = ridge.space.from_model_and_log_det(x)
    np.testing.assert_allclose(back["unconstrained"], u, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(inverse, -log_det, rtol=1e-5)
    posterior = softcvi.Posterior(softcvi.guides.mean_field(ridge), ridge)
    posterior.save(tmp_path / "fit.softcvi")
    again = softcvi.load(tmp_path / "fit.softcvi", target=target).target.space
    np.testing.assert_allclose(
        again.to_model({"unconstrained": u})["unconstrained"], x["unconstrained"]
    )
