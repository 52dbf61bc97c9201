"""Our own references: their quality, and agreement with the published ones."""

import shutil
from pathlib import Path

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from numpyro.infer.util import log_density
from softcvi_experiments import references
from softcvi_experiments.references import (
    POSTERIORS,
    BuiltinReferences,
    PosteriordbSbibm,
    Reference,
    ReferenceFileError,
)

DATA = Path(references.__file__).parent / "data"
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
# Largest of some hundred standard normals, with room to spare.
MOST_SIGMAS = 4.5


def assert_same_distribution(ours, theirs, our_size, their_size):
    """Compare means, sds and quantiles within Monte Carlo error.

    Quantiles are compared as probabilities (what share of ours lies below a quantile
    of theirs), whose error is known even where a density has a gap.
    """
    per_draw = 1 / our_size + 1 / their_size
    sd = theirs.std(axis=0)
    z_mean = (ours.mean(axis=0) - theirs.mean(axis=0)) / (sd * np.sqrt(per_draw))
    assert np.abs(z_mean).max() < MOST_SIGMAS
    # var(s^2) = (m4 - sd^4) / n, and an sd moves half as much as its square.
    fourth = ((theirs - theirs.mean(axis=0)) ** 4).mean(axis=0)
    sd_error = np.sqrt((fourth - sd**4) * per_draw) / (2 * sd)
    assert (np.abs(ours.std(axis=0) - sd) / sd_error).max() < MOST_SIGMAS
    for level, quantile in zip(
        LEVELS, np.quantile(theirs, LEVELS, axis=0), strict=True
    ):
        share = (ours <= quantile).mean(axis=0)
        error = np.sqrt(level * (1 - level) * per_draw)
        assert (np.abs(share - level) / error).max() < MOST_SIGMAS


@pytest.mark.parametrize("posterior", POSTERIORS)
def test_shipped_quality(posterior):
    reference = BuiltinReferences().load(posterior)
    assert reference.num_draws == 10_000
    assert reference.provenance["source"] == "softcvi references build"
    for name, draws in reference.draws.items():
        assert np.isfinite(draws).all()
        if posterior.startswith("slcp"):
            continue  # resampled and shuffled: R-hat of these could not fail
        assert np.all(reference.rhat[name] < 1.005)
        assert np.all(reference.ess[name] > 9_000)
    if posterior.startswith("slcp"):
        # What can go wrong there: few prior draws that carry all the weight.
        assert reference.provenance["weights_ess"] > 20_000
        assert reference.provenance["largest_weight"] < 1e-3
        theta = reference.draws["theta"]
        assert len(np.unique(theta, axis=0)) > 9_900


def test_shipped_size_and_support():
    assert sum(file.stat().st_size for file in DATA.iterdir()) < 5_000_000
    source = BuiltinReferences()
    for number in range(1, 11):
        assert np.abs(source.load(f"slcp_{number:02d}").draws["theta"]).max() < 3
    for variant in ("paper", "posteriordb"):
        draws = source.load(f"garch_{variant}").draws
        assert (draws["alpha1"] + draws["beta1"]).max() < 1
        assert draws["alpha0"].min() > 0


def test_eight_schools_agrees_with_posteriordb(public_folder):
    ours = BuiltinReferences().load("eight_schools")
    theirs = PosteriordbSbibm(public_folder).load("eight_schools")
    for name in ours.draws:
        assert_same_distribution(
            ours.draws[name], theirs.draws[name],
            np.min(ours.ess[name]), np.min(theirs.ess[name]),
        )  # fmt: skip


def test_slcp_sampler_agrees_with_sbibm(public_folder):
    theirs = PosteriordbSbibm(public_folder).load("slcp_06")
    ours = references.resample_slcp(
        jr.key(0), theirs.observed["x"], prior_draws=1_000_000
    )
    # Resampling adds its own noise to that of the weights.
    size = 1 / (1 / ours.size + 1 / 10_000)
    theta = theirs.draws["theta"]
    assert_same_distribution(ours.theta, theta, size, len(theta))


def test_slcp_sampler_keeps_the_symmetry():
    x, _ = references.simulate_slcp(jr.key(3))
    theta = references.resample_slcp(jr.key(4), x, prior_draws=500_000).theta
    shares = [
        np.mean((np.sign(theta[:, 2]) == a) & (np.sign(theta[:, 3]) == b))
        for a in (-1, 1)
        for b in (-1, 1)
    ]
    # Signs are drawn apart from the weights, so these are plain binomial shares.
    np.testing.assert_allclose(shares, 0.25, atol=4 * np.sqrt(0.25 * 0.75 / 10_000))


def test_garch_variant_is_posteriordbs(public_folder):
    """Draws of posteriordb average the score of its own model to zero, not ours."""
    reference = PosteriordbSbibm(public_folder).load("garch_posteriordb")
    y = reference.observed["y"]
    few = {k: jnp.asarray(v[::10]) for k, v in reference.draws.items()}

    def z_of_alpha1_score(variant):
        from jax import grad, jit, vmap

        def log_p(alpha1, mu, alpha0, beta1):
            values = {
                "mu": mu, "alpha0": alpha0, "alpha1": alpha1,
                "beta1_std": beta1 / (1 - alpha1),
            }  # fmt: skip
            model_log_p, _ = log_density(
                references.garch_model, (y, variant), {}, values
            )
            # The model's density is that of beta1_std.
            return model_log_p - jnp.log1p(-alpha1)

        score = jit(vmap(grad(log_p)))(
            few["alpha1"], few["mu"], few["alpha0"], few["beta1"]
        )
        # Stein's identity, with a factor that vanishes at the edges of the triangle.
        edge = few["alpha1"] * (1 - few["alpha1"] - few["beta1"])
        slope = 1 - 2 * few["alpha1"] - few["beta1"]
        terms = np.asarray(edge * score + slope)
        return terms.mean() / (terms.std() / np.sqrt(len(terms)))

    assert abs(z_of_alpha1_score("posteriordb")) < 4
    assert abs(z_of_alpha1_score("paper")) > 4


def test_linear_regression_draws_have_the_posterior_moments():
    data = references.simulate_linear_regression(jr.key(0))
    draws = references.draw_linear_regression(jr.key(1), **data, num_draws=20_000)
    design = np.column_stack([data["x"], np.ones(200)]).astype(float)
    covariance = np.linalg.inv(design.T @ design + np.eye(51))
    mean = covariance @ design.T @ np.asarray(data["y"], float)
    sd = np.sqrt(np.diag(covariance))
    sample = np.column_stack([draws["beta"], draws["mu"]])
    assert (np.abs(sample.mean(0) - mean) / (sd / np.sqrt(20_000))).max() < MOST_SIGMAS
    np.testing.assert_allclose(
        sample.std(0), sd, rtol=MOST_SIGMAS / np.sqrt(2 * 20_000)
    )
    best = -0.5 * np.sum(np.log(2 * np.pi * np.e * sd**2))
    np.testing.assert_allclose(
        references.best_factorised_log_prob(data["x"]), best, rtol=1e-4
    )


def test_build_writes_what_builtin_reads(tmp_path):
    lines = []
    references.build(tmp_path, ["slcp_01"], prior_draws=500_000, report=lines.append)
    reference = BuiltinReferences(tmp_path).load("slcp_01")
    shipped = BuiltinReferences().load("slcp_01")
    np.testing.assert_allclose(reference.observed["x"], shipped.observed["x"])
    assert lines[0].startswith("slcp_01: 10000 draws, largest R-hat ")
    with pytest.raises(ReferenceFileError, match=r"slcp_03\.npz is missing"):
        BuiltinReferences(tmp_path).load("slcp_03")


def test_damaged_and_missing_builtin_files(tmp_path):
    for name in ("SHA256SUMS", "slcp_01.npz"):
        shutil.copyfile(DATA / name, tmp_path / name)
    (tmp_path / "slcp_01.npz").write_bytes(b"not a reference")
    source = BuiltinReferences(tmp_path)
    with pytest.raises(ReferenceFileError, match=r"slcp_01\.npz is damaged") as error:
        source.load("slcp_01")
    assert "softcvi references build" in str(error.value)
    with pytest.raises(ReferenceFileError, match=r"slcp_02\.npz is missing"):
        source.load("slcp_02")
    with pytest.raises(ReferenceFileError, match="SHA256SUMS is missing"):
        BuiltinReferences(tmp_path / "nowhere").load("slcp_01")


def test_convergence_measures_see_slow_chains():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(8, 4_000))
    slow = np.zeros_like(noise)
    for t in range(1, noise.shape[1]):
        slow[:, t] = 0.9 * slow[:, t - 1] + noise[:, t]
    made = Reference.from_chains("toy", {"a": noise, "b": slow}, {}, {})
    # An AR(1) of 0.9 has (1 - 0.9) / (1 + 0.9) of its draws' worth.
    np.testing.assert_allclose(made.ess["b"], 32_000 / 19, rtol=0.25)
    np.testing.assert_allclose(made.ess["a"], 32_000, rtol=0.1)
    apart = noise + 3 * np.arange(8)[:, None]
    assert Reference.from_chains("toy", {"a": apart}, {}, {}).rhat["a"] > 1.5
