"""How the objectives are related, and what their reports mean."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest

from softcvi import (
    ELBO,
    Alpha,
    DensityTarget,
    FDivergence,
    SNISForwardKL,
    SoftCVI,
    TemperedPosterior,
    TemperedProposal,
    WithModelTerm,
    guides,
)
from softcvi.objectives import (
    DefensiveProposal,
    FixedProposal,
    Particles,
    contrast,
)

TARGET = DensityTarget(
    lambda x: -0.5 * jnp.sum(((x - 0.8) / 0.6) ** 2), np.zeros(2, np.float32)
)
GUIDE = guides.mean_field(TARGET)


@eqx.filter_jit
def flat_gradients(objective, guide, keys):
    def loss(guide, key):
        return objective.loss(key, paramax.unwrap(guide), TARGET)[0]

    gradient = jax.vmap(lambda k: eqx.filter_grad(loss)(guide, k))(keys)
    leaves = jax.tree_util.tree_leaves(gradient)
    return jnp.concatenate([leaf.reshape(len(keys), -1) for leaf in leaves], axis=1)


@pytest.fixture(scope="module")
def gradients():
    """On the same 4,000 sets of particles: the same keys draw the same."""
    keys = jax.random.split(jax.random.key(0), 4000)
    objectives = {
        "softcvi": SoftCVI(negative=TemperedProposal(1.0)),
        "low variance": SNISForwardKL(low_variance=True),
        "plain": SNISForwardKL(),
    }
    return {
        name: np.asarray(flat_gradients(objective, GUIDE, keys), float)
        for name, objective in objectives.items()
    }


def test_softcvi_with_alpha_one_is_low_variance_snis_fkl(gradients):
    np.testing.assert_allclose(
        gradients["softcvi"], gradients["low variance"], atol=1e-6
    )
    assert np.abs(gradients["softcvi"]).max() > 0.1


def test_snis_fkl_equals_it_in_expectation_with_more_noise(gradients):
    difference = gradients["plain"] - gradients["softcvi"]
    error = difference.std(axis=0) / np.sqrt(len(difference))
    assert np.all(np.abs(difference.mean(axis=0)) < 4 * error)
    assert np.all(np.abs(gradients["softcvi"].mean(axis=0)) > 4 * error)
    assert np.all(gradients["plain"].std(axis=0) > gradients["softcvi"].std(axis=0))


@pytest.mark.parametrize("objective", [SoftCVI(), ELBO()], ids=["softcvi", "elbo"])
@pytest.mark.parametrize("seed", [0, 2**32 - 1])
def test_particles_are_the_guides_draws_to_the_last_bit(objective, seed):
    """What keeps the compiler from drawing twice leaves every number as it is."""
    key = jax.random.wrap_key_data(jnp.full(2, seed, jnp.uint32))
    guide = paramax.unwrap(GUIDE)
    particles = jax.jit(lambda k: objective.draw(k, guide, TARGET))(key)
    drawn = jax.jit(jax.vmap(guide.sample))(jax.random.split(key, 8))
    np.testing.assert_array_equal(particles.values, drawn)
    np.testing.assert_allclose(
        particles.log_p, jax.vmap(TARGET.log_density)(drawn), rtol=1e-6
    )
    np.testing.assert_allclose(
        particles.log_q, jax.vmap(guide.log_prob)(drawn), rtol=1e-6
    )


def test_one_hot_labels_give_infonce():
    rng = np.random.default_rng(0)
    log_q, log_negative = rng.normal(size=(2, 6)).astype(np.float32)
    log_p = np.where(np.arange(6) == 2, 0.0, -np.inf).astype(np.float32)
    loss, info = jax.jit(contrast)(log_p, log_q, log_negative)
    ratio = np.exp(log_q - log_negative)
    assert float(loss) == pytest.approx(-np.log(ratio[2] / ratio.sum()), rel=1e-5)
    assert float(info.label_ess) == pytest.approx(1.0)


def test_excess_is_the_divergence_of_labels_and_predictions():
    rng = np.random.default_rng(1)
    log_p, log_q, log_negative = rng.normal(size=(3, 5)).astype(np.float32)
    _, info = jax.jit(contrast)(log_p, log_q, log_negative)
    labels, predictions = (
        np.exp(z) / np.exp(z).sum()
        for z in (log_p - log_negative, log_q - log_negative)
    )
    exact = np.sum(labels * np.log(labels / predictions))
    assert float(info.excess) == pytest.approx(exact, rel=1e-4)
    assert float(info.label_ess) == pytest.approx(1 / np.sum(labels**2), rel=1e-5)
    assert float(info.elbo) == pytest.approx(np.mean(log_p - log_q), rel=1e-5)


def test_bad_densities_are_counted_and_lose_their_label():
    log_q = np.zeros(5, np.float32)
    log_p = np.array([0.0, np.nan, np.inf, -np.inf, 0.0], np.float32)
    loss, info = jax.jit(contrast)(log_p, log_q, log_q)
    assert int(info.num_bad) == 2
    assert bool(info.usable)
    assert float(info.label_ess) == pytest.approx(2.0)
    assert float(loss) == pytest.approx(np.log(5), rel=1e-5)
    _, nothing = jax.jit(contrast)(np.full(5, -np.inf, np.float32), log_q, log_q)
    assert not bool(nothing.usable)
    assert int(nothing.num_bad) == 0
    assert np.isfinite(nothing.excess)


@eqx.filter_jit
def smoothed_slopes(scales, alpha, smoothing, draws):
    """Mean slope of the loss in log scale, for guides N(0, scale) on a N(0, 1)."""

    def slope(scale, noise):
        x = scale * noise

        def loss(log_scale):
            sigma = jnp.exp(log_scale)
            log_q = -0.5 * (x / sigma) ** 2 - log_scale
            objective = SoftCVI(
                negative=TemperedProposal(alpha),
                temperature=10.0,
                label_smoothing=smoothing,
            )
            particles = Particles(x, -0.5 * x**2, log_q, jax.lax.stop_gradient(log_q))
            return objective.value(particles)[0]

        return jax.grad(loss)(jnp.log(scale))

    each = jax.vmap(lambda s: jax.vmap(lambda n: slope(s, n))(draws))(scales)
    return jnp.mean(each, axis=1)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_label_smoothing_moves_the_optimum_as_documented(alpha):
    """Variance too wide by about 1 / (1 - s (1 - alpha)) where labels are uniform."""
    smoothing = 0.1
    draws = np.random.default_rng(0).normal(size=(20_000, 8)).astype(np.float32)
    variances = np.linspace(0.8, 1.3, 51).astype(np.float32)
    slopes = smoothed_slopes(np.sqrt(variances), alpha, smoothing, draws)
    crossing = np.interp(0.0, np.asarray(slopes), variances)
    assert crossing == pytest.approx(1 / (1 - smoothing * (1 - alpha)), abs=0.02)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: SoftCVI(num_particles=1), "num_particles: must be at least 2"),
        (lambda: SNISForwardKL(num_particles=1), "num_particles: must be at least 2"),
        (lambda: ELBO(num_particles=0), "num_particles: must be at least 1"),
        (lambda: TemperedProposal(1.2), r"alpha: must lie in \[0, 1\].*allow_outside"),
        (lambda: TemperedPosterior(-0.1), r"alpha: must lie in \[0, 1\]"),
        (lambda: TemperedProposal(float("nan")), "alpha: must be finite"),
        (lambda: SoftCVI(temperature=0.0), "temperature: must be positive"),
        (lambda: SoftCVI(temperature=float("nan")), "temperature: must be positive"),
        (lambda: SoftCVI(label_smoothing=1.0), "label_smoothing: must lie in"),
        (lambda: Alpha(1.0), "a: 1.0 is a limit"),
        (lambda: FDivergence(lambda t: t**2), r"f: an f-divergence needs f\(1\) = 0"),
        (lambda: DefensiveProposal(GUIDE, share=1.0), "share: must lie strictly"),
    ],
)
def test_impossible_settings_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.wrong_types
def test_particles_must_be_a_whole_number():
    with pytest.raises(TypeError, match="num_particles: expected an integer"):
        SoftCVI(num_particles=2.5)


def test_alpha_outside_is_allowed_if_meant():
    assert TemperedProposal(1.2, allow_outside=True).alpha == 1.2
    assert WithModelTerm(SoftCVI(num_particles=3)).num_particles == 3


def test_objectives_can_be_made_inside_a_compiled_function():
    @jax.jit
    def loss(log_q):
        objective = SoftCVI(
            num_particles=3,
            negative=TemperedProposal(0.5),
            divergence=FDivergence(lambda t: (t - 1) ** 2),
        )
        return objective.value(Particles(None, log_q, log_q, log_q))[0]

    assert float(loss(np.zeros(3, np.float32))) == pytest.approx(0.0, abs=1e-6)


def test_low_variance_snis_refuses_particles_from_elsewhere():
    """The mean score vanishes under the guide alone: elsewhere it would be a bias."""
    elsewhere = FixedProposal(guides.mean_field(TARGET, scale=2.0))
    with pytest.raises(ValueError, match="low_variance: the mean score"):
        SNISForwardKL(low_variance=True, proposal=elsewhere)
    SNISForwardKL(low_variance=False, proposal=elsewhere)
