"""``adapters.pymc.fit``, beside ``pm.fit``."""

import numpy as np
import pytest

import softcvi
from softcvi.adapters import from_pymc, pymc, to_arviz

pm = pytest.importorskip("pymc")
pytest.importorskip("arviz_base")
# Says how PyTensor was installed; nothing here needs to be fast.
pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link")


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 5)
        sigma = pm.HalfNormal("sigma", 1, initval=0.5)
        pm.Normal("y", mu, sigma, observed=np.array([1.0, 2.0, 3.0]))
    return model


@pytest.fixture(scope="module")
def approximation(model):
    return pymc.fit(300, model=model, random_seed=0, progressbar=False)


def test_the_trace_has_draws_and_their_densities(model, approximation):
    trace = approximation.sample(50, random_seed=3)
    again = approximation.sample(50, random_seed=3)
    np.testing.assert_array_equal(trace.posterior["mu"], again.posterior["mu"])
    other = approximation.sample(50, random_seed=np.random.default_rng(4))
    assert not np.array_equal(other.posterior["mu"], trace.posterior["mu"])
    mu, sigma = (trace.posterior[n].values[0] for n in ("mu", "sigma"))
    logp = model.compile_logp(jacobian=False)
    expected = [
        float(logp({"mu": a, "sigma_log__": b}))
        for a, b in zip(mu, np.log(sigma), strict=True)
    ]
    found = trace.sample_stats["log_p"].values[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_where_chains_are_the_answer_the_trace_has_their_draws(approximation):
    result = approximation.result
    draws = {"mu": np.full(20, 7.0), "sigma": np.full(20, 2.0)}
    corrected = pymc.Approximation(result.with_facts(chains=_Given(draws)), seed=0)
    trace = corrected.sample(20)
    np.testing.assert_allclose(trace.posterior["mu"], 7.0)
    tree = to_arviz(corrected.result, n=20)
    np.testing.assert_allclose(tree["posterior"]["mu"], 7.0)
    assert "log_weight" not in tree["sample_stats"]


class _Given:
    """Draws in the place of those of chains."""

    def __init__(self, draws):
        self.draws = draws

    def sample(self, key, n):
        return {name: value[:n] for name, value in self.draws.items()}


def test_a_model_without_data_has_a_trace():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Potential("pull", -((mu - 1.0) ** 2))
    approximation = pymc.fit(300, model=model, random_seed=0, progressbar=False)
    trace = approximation.sample(500)
    np.testing.assert_allclose(trace.posterior["mu"].mean(), 2 / 3, atol=0.1)
    tree = to_arviz(approximation.result, n=5)
    assert "log_likelihood" not in tree.children


def test_methods_of_pymc_name_guides(model):
    full = pymc.fit(100, "fullrank_advi", model=model, random_seed=0, progressbar=False)
    expected = softcvi.guides.full_rank(from_pymc(model))
    assert type(full.result.posterior.guide) is type(expected)
    with pytest.raises(ValueError, match=r"method: expected one of.*svgd"):
        pymc.fit(100, method="svgd", model=model)
    with pytest.raises(TypeError, match=r"obj_n_mc: an option of pm\.fit only"):
        pymc.fit(100, model=model, obj_n_mc=3)


def test_a_start_may_leave_variables_out(model):
    from softcvi.adapters.pymc._fit import _whole_point

    target = from_pymc(model)
    point = _whole_point(target, {"mu": 4.0})
    np.testing.assert_allclose(point["sigma"], 0.5, rtol=1e-6)
    assert point["mu"] == 4.0
    options = {"model": model, "random_seed": 0, "progressbar": False}
    assert pymc.fit(100, start={"mu": 4.0}, **options).result.status == "finished"
    with pytest.raises(ValueError, match=r"start: \['nu'\] are no free variables"):
        pymc.fit(100, start={"nu": 4.0}, **options)
