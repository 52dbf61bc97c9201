"""The paper's metrics, k-hat, gradient statistics and the verdict."""

import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest

import softcvi
from softcvi import diagnostics, guides
from softcvi.objectives import FixedProposal
from softcvi.posterior import ImportanceSample

DIM = 10


def normal(x):
    return -0.5 * jnp.sum(x**2)


@pytest.fixture(scope="module")
def target():
    return softcvi.DensityTarget(normal, np.zeros(DIM, np.float32))


@pytest.fixture(scope="module")
def posteriors(target):
    """The exact guide, one with a third of the scale, and one in the wrong place."""

    def at(loc, scale):
        part = guides.DiagonalNormal(jnp.full(DIM, loc), jnp.full(DIM, scale))
        return softcvi.Posterior(guides.VectorGuide(part, target.structure), target)

    return {"exact": at(0.0, 1.0), "narrow": at(0.0, 1 / 3), "off": at(0.5, 1.0)}


def judged(sample, **signs):
    weights = diagnostics.WeightEvidence.of(sample)
    return diagnostics.judge(diagnostics.Evidence(weights=weights, **signs))


def chains_that_move(shift):
    return diagnostics.ChainCheck(shift=shift, spread=(0.9, 1.1), acceptance=0.8)


def test_coverage_of_an_exact_guide_is_nominal(posteriors):
    n = 4000
    draws = posteriors["exact"].sample(jax.random.key(0), n)
    reference = np.random.default_rng(0).normal(size=(n, DIM)).astype(np.float32)
    log_q = [posteriors["exact"].log_prob(x) for x in (draws, {"value": reference})]
    nominal, actual = diagnostics.coverage(*log_q)
    assert nominal.shape == actual.shape == (100,)
    nominal, actual = np.asarray(nominal, float), np.asarray(actual, float)
    # Quantile and share are both estimated; the largest of 100 correlated errors.
    error = np.sqrt(nominal * (1 - nominal) * 2 / n)
    assert np.all(np.abs(actual - nominal) < 4.5 * error)

    narrow = [posteriors["narrow"].log_prob({"value": reference})]
    narrow.insert(
        0,
        posteriors["narrow"].log_prob(
            posteriors["narrow"].sample(jax.random.key(1), n)
        ),
    )
    _, overconfident = diagnostics.coverage(*narrow, jnp.array([0.5]))
    assert float(overconfident[0]) < 0.05


def test_khat_tells_right_from_narrow(posteriors):
    assert diagnostics.khat(posteriors["exact"]) < 0.5
    assert diagnostics.khat(posteriors["narrow"]) > 0.7
    exact = posteriors["exact"].importance(jax.random.key(1), 2000)
    narrow = posteriors["narrow"].importance(jax.random.key(1), 2000)
    assert judged(exact).trusted
    verdict = judged(narrow)
    assert verdict.level == "not trusted"
    assert "k-hat" in str(verdict)


def test_reference_log_prob_and_mean_accuracy(posteriors):
    reference = np.random.default_rng(1).normal(size=(4000, DIM)).astype(np.float32)
    value = diagnostics.reference_log_prob(posteriors["exact"], {"value": reference})
    entropy = 0.5 * DIM * np.log(2 * np.pi * np.e)
    assert abs(float(value) + entropy) < 4 * np.sqrt(DIM / 2 / 4000)
    draws = {"value": reference + 0.5}
    accuracy = diagnostics.mean_accuracy(draws, {"value": reference})
    assert float(accuracy) == pytest.approx(-0.5 * np.sqrt(DIM), rel=0.05)
    assert float(diagnostics.mean_accuracy(draws, draws)) == 0.0


def test_gradient_statistics(target, posteriors):
    """At the posterior SoftCVI has no noise, SNIS-fKL has; elsewhere both point."""
    key = jax.random.key(0)
    soft, snis = softcvi.SoftCVI(), softcvi.SNISForwardKL()

    def of(objective, where):
        guide = posteriors[where].guide
        stats = diagnostics.gradient_snr(key, objective, guide, target, 400)
        return stats.signal, stats.noise, stats.ratio

    quiet, loud = (of(objective, "exact")[1] for objective in (soft, snis))
    assert float(jnp.max(quiet.distribution.loc)) < 1e-5
    assert float(jnp.min(loud.distribution.loc)) > 0.1
    signal, noise, ratio = of(soft, "off")
    assert float(jnp.min(signal.distribution.loc)) > 0.01
    np.testing.assert_allclose(
        ratio.distribution.loc, signal.distribution.loc / noise.distribution.loc, 1e-5
    )
    fixed = softcvi.SoftCVI(
        proposal=FixedProposal(guides.mean_field(target, scale=2.0))
    )
    _, quiet, _ = of(fixed, "exact")
    assert float(jnp.max(quiet.distribution.loc)) < 1e-5
    assert paramax.unwrap(fixed).num_particles == 8


def test_the_verdict_reads_more_than_khat(posteriors):
    sample = posteriors["exact"].importance(jax.random.key(1), 2000)
    signs = {
        "label_ess": (1.01, "label ESS", "not trusted"),
        "chains": (chains_that_move(3.0), "short chains", "not trusted"),
        "drift": (1.0, "still moved", "caution"),
    }
    for name, (value, words, level) in signs.items():
        verdict = judged(sample, **{name: value})
        assert verdict.level == level
        assert words in str(verdict)
        assert getattr(verdict.evidence, name) == value
    fine = judged(
        sample,
        label_ess=4.0,
        chains=chains_that_move(0.1),
        drift=0.0,
    )
    assert fine.trusted


def test_khat_of_even_weights_is_no_reason():
    rng = np.random.default_rng(0)
    log_weights = np.zeros(1_000)
    log_weights[:30] = 0.3 * rng.pareto(1.0, 30).clip(0, 3)
    sample = ImportanceSample(
        draws={"x": rng.normal(size=1_000)},
        log_p=log_weights, log_q=np.zeros(1_000),
        log_weights=log_weights - np.log(np.exp(log_weights).sum()),
        khat=1.0, log_evidence=0.0,
    )  # fmt: skip
    verdict = judged(sample)
    assert verdict.trusted
    assert verdict.has_even_weights
    assert "says nothing" in str(verdict)


def test_constants_among_the_draws_are_not_moved_by_weights():
    """As on the diagonal of a correlation matrix: only rounding differs."""
    rng = np.random.default_rng(0)
    log_weights = rng.normal(scale=0.1, size=1000)
    log_weights -= np.log(np.sum(np.exp(log_weights)))
    zeros = np.zeros(1000)
    draws = {"x": rng.normal(size=1000), "one": np.full(1000, 0.1)}
    sample = ImportanceSample(
        draws, zeros, zeros, log_weights, khat=0.1, log_evidence=0.0
    )
    assert judged(sample).trusted


def test_drift_is_measured_beyond_noise():
    noise = np.random.default_rng(0).normal(size=500)
    assert diagnostics.settled_drift(noise) == 0.0
    assert diagnostics.settled_drift(np.linspace(0, 50, 500)) == pytest.approx(
        5, rel=0.1
    )
    assert diagnostics.settled_drift(np.full(500, np.nan)) is None


def test_summaries_weigh_their_draws():
    draws = {"x": np.array([0.0, 1.0, 2.0, 3.0]), "m": np.zeros((4, 1, 2))}
    rows = diagnostics.summarise(draws)
    assert [row["name"] for row in rows] == ["x", "m[0,0]", "m[0,1]"]
    assert rows[0]["mean"] == 1.5
    assert rows[0]["sd"] == pytest.approx(np.std(draws["x"]))
    weights = np.log([0.7, 0.1, 0.1, 0.1])
    (weighted,) = diagnostics.summarise({"x": draws["x"]}, weights)
    assert weighted["mean"] == pytest.approx(0.6)
    assert weighted["median"] == 0.0


def test_infinite_draws_without_weight_are_left_out_of_the_summary():
    draws = {"x": np.array([1.0, 3.0, np.inf])}
    with np.errstate(divide="ignore"):
        (row,) = diagnostics.summarise(draws, np.log([0.5, 0.5, 0.0]))
    assert (row["mean"], row["sd"]) == (2.0, 1.0)


@pytest.mark.parametrize(
    ("scale", "is_bad"), [(1e-15, True), (1e-7, True), (1e-2, False)]
)
def test_parameters_without_the_digits_for_the_posterior_count_as_rounding(
    scale, is_bad
):
    """Draws that are all equal once showed no rounding at all."""
    from softcvi.diagnostics._precision import rounding_at

    def log_prob(x):
        return -0.5 * jnp.sum(((x - 1.0) / jnp.float32(scale)) ** 2)

    target = softcvi.DensityTarget(log_prob, np.zeros(2, np.float32))
    draws = 1.0 + scale * np.random.default_rng(0).normal(size=(50, 2))
    rounding = rounding_at(jax.random.key(0), target, draws.astype(np.float32))
    assert (rounding > diagnostics.THRESHOLDS.max_rounding) == is_bad


def test_chains_without_bounds_raise_no_warning():
    from softcvi.diagnostics._short_chains import limit_of

    start = np.random.default_rng(0).normal(size=(20, 2))
    later = start.copy()
    later[3, 0] = np.inf
    assert not np.isfinite(limit_of(later, start, np.zeros(20, int)).value[0])
