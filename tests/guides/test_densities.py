"""Densities against closed forms, and draws against their distribution functions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from scipy import stats
from scipy.special import digamma

from softcvi import guides

LOC = np.array([0.5, -1.0, 2.0], np.float32)
SCALE = np.array([0.4, 2.0, 1.0], np.float32)
FACTOR = np.array([[1.0, 0.2], [-1.5, 0.0], [0.3, 0.7]], np.float32)
ROOT = np.array([[1.0, 0, 0], [0.5, 0.8, 0], [-0.3, 0.4, 1.2]], np.float32)
COVARIANCE = ROOT @ ROOT.T

NORMALS = {
    "diagonal": (guides.DiagonalNormal(LOC, SCALE), np.diag(SCALE**2)),
    "full rank": (guides.FullRankNormal(LOC, COVARIANCE), COVARIANCE),
    "low rank": (
        guides.LowRankNormal(LOC, SCALE, FACTOR),
        np.diag(SCALE**2) + FACTOR @ FACTOR.T,
    ),
    "whitened": (
        guides.Whitened(guides.DiagonalNormal(0 * LOC, SCALE), LOC, ROOT),
        ROOT @ np.diag(SCALE**2) @ ROOT.T,
    ),
}


@eqx.filter_jit
def draw_and_score(distribution, x, keys):
    d = paramax.unwrap(distribution)
    return jax.vmap(d._log_prob)(x), jax.vmap(d._sample)(keys)


@pytest.mark.parametrize("name", NORMALS)
def test_normals(name):
    distribution, covariance = NORMALS[name]
    x = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    keys = jax.random.split(jax.random.key(0), 4000)
    log_prob, draws = draw_and_score(distribution, x, keys)
    exact = stats.multivariate_normal(LOC, covariance)
    np.testing.assert_allclose(log_prob, exact.logpdf(x), rtol=1e-4)
    # Squared distances of draws are chi-squared exactly if mean and covariance are.
    centred = np.asarray(draws, float) - LOC
    distance = np.sum(centred @ np.linalg.inv(covariance) * centred, axis=1)
    assert stats.kstest(distance, stats.chi2(3).cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 1e-6), ("float64", 2e-11)]
)
def test_normaliser_of_student_t_over_all_degrees_of_freedom(dtype, tolerance):
    def at_zero(df):
        t = paramax.unwrap(guides.StudentT(jnp.ones((), dtype)))
        return eqx.tree_at(lambda t: t.df, t, df).log_prob(jnp.zeros((), dtype))

    df = np.geomspace(1e-2, 1e6, 50)
    with jax.enable_x64(dtype == "float64"):
        value, gradient = jax.vmap(jax.value_and_grad(at_zero))(jnp.asarray(df, dtype))
    exact = (digamma((df + 1) / 2) - digamma(df / 2) - 1 / df) / 2
    np.testing.assert_allclose(value, stats.t(df).logpdf(0.0), atol=tolerance)
    np.testing.assert_allclose(gradient, exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("df", [1.5, 5.0])
def test_student_t(df):
    t = guides.StudentT(jnp.full(2, df), np.array([0.5, -1.0]), np.array([0.4, 2.0]))
    x = np.array([[0.0, 0.0], [30.0, -5.0], [0.5, -1.0]], np.float32)
    keys = jax.random.split(jax.random.key(1), 4000)
    log_prob, draws = draw_and_score(t, x, keys)
    exact = stats.t(df, [0.5, -1.0], [0.4, 2.0])
    np.testing.assert_allclose(log_prob, exact.logpdf(x).sum(axis=1), rtol=1e-5)
    for i in range(2):
        column = np.asarray(draws)[:, i]
        cdf = stats.t(df, [0.5, -1.0][i], [0.4, 2.0][i]).cdf
        assert stats.kstest(column, cdf).pvalue > 1e-3


def test_full_rank_t():
    t = guides.FullRankStudentT(LOC, COVARIANCE, df=6)
    x = 3 * np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    keys = jax.random.split(jax.random.key(1), 4000)
    log_prob, draws = draw_and_score(t, x, keys)
    exact = stats.multivariate_t(LOC, COVARIANCE, df=6)
    np.testing.assert_allclose(log_prob, exact.logpdf(x), rtol=1e-4)
    centred = np.asarray(draws, float) - LOC
    distance = np.sum(centred @ np.linalg.inv(COVARIANCE) * centred, axis=1)
    assert stats.kstest(distance / 3, stats.f(3, 6).cdf).pvalue > 1e-3
    with pytest.raises(ValueError, match="df: must be even and above two; got 5"):
        guides.FullRankStudentT(LOC, COVARIANCE, df=5)


def test_folded_normal():
    folded = guides.Folded(guides.DiagonalNormal(jnp.array(0.7), jnp.array(1.3)))
    x = np.array([0.0, 0.4, 3.0, -0.4], np.float32)
    keys = jax.random.split(jax.random.key(2), 4000)
    log_prob, draws = draw_and_score(folded, x, keys)
    exact = stats.foldnorm(0.7 / 1.3, scale=1.3)
    np.testing.assert_allclose(log_prob[:3], exact.logpdf(x[:3]), atol=1e-5)
    assert log_prob[3] == -np.inf
    assert stats.kstest(np.asarray(draws), exact.cdf).pvalue > 1e-3


def test_discrete_draws_follow_their_probabilities():
    logits = np.array([[0.0, 1.0, -1.0], [2.0, 0.0, 0.0]], np.float32)
    keys = jax.random.split(jax.random.key(3), 4000)
    categorical = guides.Categorical(logits)
    _, draws = draw_and_score(categorical, np.zeros((1, 2), np.int32), keys)
    odds = np.exp(logits.astype(float))
    share = odds / odds.sum(axis=1, keepdims=True)
    counts = np.stack([np.bincount(column, minlength=3) for column in draws.T])
    assert stats.chisquare(counts[0], 4000 * share[0]).pvalue > 1e-3
    assert stats.chisquare(counts[1], 4000 * share[1]).pvalue > 1e-3

    coins = guides.Bernoulli(np.array([-1.0, 0.5], np.float32))
    log_prob, flips = draw_and_score(coins, np.array([[0, 1]], np.int32), keys)
    heads = 1 / (1 + np.exp([1.0, -0.5]))
    np.testing.assert_allclose(
        log_prob[0], np.log([1 - heads[0], heads[1]]).sum(), 1e-5
    )
    error = np.sqrt(heads * (1 - heads) / 4000)
    assert np.all(np.abs(np.mean(flips, axis=0) - heads) < 4 * error)


def test_matched_guides_have_the_moments():
    mean, covariance = jnp.asarray(LOC), jnp.asarray(COVARIANCE)
    sd = np.sqrt(np.diag(COVARIANCE))
    diagonal = paramax.unwrap(guides.mean_field(LOC).matched(mean, covariance))
    np.testing.assert_allclose(diagonal.distribution.scale, sd, rtol=1e-5)
    full = paramax.unwrap(guides.full_rank(LOC).matched(mean, covariance))
    z = jax.random.normal(jax.random.key(0), (3,))
    exact = jax.scipy.stats.multivariate_normal.logpdf(z, mean, covariance)
    np.testing.assert_allclose(full.distribution.log_prob(z), exact, rtol=1e-4)
    t = paramax.unwrap(guides.student_t(LOC).matched(mean, covariance)).distribution
    variance = np.square(t.scale) * np.asarray(t.df) / (np.asarray(t.df) - 2)
    np.testing.assert_allclose(variance, sd**2, rtol=1e-5)
    wide = paramax.unwrap(guides.full_rank_t(LOC).matched(mean, covariance))
    exact = stats.multivariate_t(LOC, COVARIANCE * 6 / 8, df=8).logpdf(z)
    np.testing.assert_allclose(wide.distribution.log_prob(z), exact, rtol=1e-4)
    # Rank 3 of 3 scalars is enough to hold any covariance but for the kept diagonal.
    low = guides.low_rank(LOC, rank=3).matched(mean, covariance)
    low = paramax.unwrap(low).distribution
    rebuilt = np.diag(np.square(low.scale)) + low.factor @ low.factor.T
    assert np.all(np.linalg.eigvalsh(rebuilt) > 0)
    np.testing.assert_allclose(low.loc, LOC)


@pytest.mark.wrong_types
def test_bad_sizes_are_refused():
    with pytest.raises(ValueError, match="distribution: has shape"):
        guides.VectorGuide(guides.DiagonalNormal(LOC, SCALE), np.zeros(2))
    with pytest.raises(ValueError, match=r"like: \['k'\] are discrete"):
        guides.mean_field({"k": np.zeros(2, int)})
    with pytest.raises(ValueError, match="rank: must lie between 1 and the 3"):
        guides.low_rank(LOC, rank=4)
    with pytest.raises(ValueError, match="mean, scale, factor: need 3 rows"):
        guides.low_rank_at(LOC, LOC, SCALE, np.ones((2, 1)))
    with pytest.raises(ValueError, match="dim: a coupling flow needs at least 2"):
        guides.coupling_flow(np.zeros(1, np.float32), key=jax.random.key(0))
    with pytest.raises(ValueError, match="base: must be scalar"):
        guides.Folded(guides.DiagonalNormal(LOC, SCALE))
    with pytest.raises(ValueError, match="network, cond_shape: give both"):
        guides.SplineUniform(cond_shape=(1,))


def test_a_low_rank_normal_is_placed_by_its_parts():
    """The density is that of the covariance, which is made here and not there."""
    rng = np.random.default_rng(0)
    mean, scale = rng.normal(size=4), rng.uniform(0.5, 2.0, 4)
    factor = rng.normal(size=(4, 2))
    guide = guides.low_rank_at(np.zeros(4, np.float32), mean, scale, factor)
    x = rng.normal(size=4).astype(np.float32)
    covariance = np.diag(scale**2) + factor @ factor.T
    expected = stats.multivariate_normal(mean, covariance).logpdf(x)
    np.testing.assert_allclose(guide.log_prob(x), expected, rtol=1e-4)
    assert guide.suggested_rate == guide.tuned_rate
