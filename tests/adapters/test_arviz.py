import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from tests.adapters.conftest import EFFECTS, NUTS

pytest.importorskip("arviz_base")
arviz_stats = pytest.importorskip("arviz_stats")


@pytest.fixture(scope="module")
def tree(schools_fit):
    return schools_fit.posterior.to_arviz(jax.random.key(3), n=2000)


def test_groups_names_and_coordinates(tree):
    groups = {
        "posterior",
        "sample_stats",
        "log_likelihood",
        "posterior_predictive",
        "observed_data",
    }
    assert groups <= set(tree.children)
    assert tree["posterior"]["theta"].dims == ("chain", "draw", "school")
    assert tree["posterior"]["theta"].shape == (1, 2000, 8)
    assert tree["posterior_predictive"]["obs"].dims == ("chain", "draw", "school")
    np.testing.assert_allclose(tree["observed_data"]["obs"], EFFECTS)
    np.testing.assert_array_equal(tree["posterior"]["school"], np.arange(8))


def test_weights_are_normalised_and_khat_is_there(tree):
    stats = tree["sample_stats"]
    np.testing.assert_allclose(np.exp(stats["log_weight"]).sum(), 1.0, rtol=1e-6)
    assert np.isfinite(stats.attrs["khat"])
    ratio = (stats["log_p"] - stats["log_q"]).values.ravel()
    # Smoothing changes the tail only.
    order = np.argsort(ratio)[:1000]
    raw = ratio[order] - stats["log_weight"].values.ravel()[order]
    np.testing.assert_allclose(raw - raw[0], 0.0, atol=1e-4)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_arviz_takes_it(tree):
    table = arviz_stats.summary(tree, var_names=["mu", "tau", "theta"])
    assert len(table) == 10
    stats = tree["sample_stats"]
    elpd = arviz_stats.loo_approximate_posterior(
        tree, stats["log_p"].values.ravel(), stats["log_q"].values.ravel()
    )
    # PSIS-LOO of eight schools is about -30.8 in every textbook that prints it.
    np.testing.assert_allclose(elpd.elpd, -30.8, atol=0.4)


def test_the_plots_take_it(tree):
    matplotlib = pytest.importorskip("matplotlib")
    plots = pytest.importorskip("arviz_plots")
    matplotlib.use("Agg")
    plots.plot_forest(tree, var_names=["theta"], backend="matplotlib")
    plots.plot_dist(tree, var_names=["mu"], backend="matplotlib")


def test_corrected_draws_have_the_right_moments(schools_fit):
    tree = softcvi.adapters.to_arviz(
        schools_fit.posterior, n=5000, corrected=True, predictive=False
    )
    assert "posterior_predictive" not in tree.children
    mean, sd = NUTS["tau"]
    np.testing.assert_allclose(tree["posterior"]["tau"].mean(), mean, atol=0.15 * sd)


def test_the_tree_of_a_fit_has_the_draws_of_its_verdict(schools_fit):
    key = jax.random.key(5)
    tree = softcvi.adapters.to_arviz(schools_fit, key, n=50, predictive=False)
    draws = schools_fit.sample(jax.random.split(key, 3)[0], 50)
    np.testing.assert_array_equal(tree["posterior"]["tau"].values[0], draws["tau"])
    # Weights would correct these draws a second time.
    assert set(tree["sample_stats"].data_vars) == {"log_p"}
    with pytest.raises(ValueError, match=r"corrected: .*result\.posterior"):
        softcvi.adapters.to_arviz(schools_fit, n=5, corrected=True)


def test_without_a_model_there_are_draws_and_log_q(tmp_path):
    target = softcvi.DensityTarget(
        lambda t: -0.5 * jnp.sum(t["x"] ** 2), {"x": jnp.zeros(2)}
    )
    posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
    posterior.save(tmp_path / "fit.softcvi")
    tree = softcvi.load(tmp_path / "fit.softcvi").to_arviz(n=10, dims={"x": ["axis"]})
    assert tree["posterior"]["x"].dims == ("chain", "draw", "axis")
    assert set(tree["sample_stats"].data_vars) == {"log_q"}
