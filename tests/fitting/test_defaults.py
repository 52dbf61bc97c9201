"""``fit`` left to itself: the cheapest guide that will do, never worse than before."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import softcvi
from softcvi import FitError, fitting, guides
from softcvi.diagnostics import Kind
from softcvi.fitting._compare import Quality, is_worse, quality
from softcvi.fitting._loop import Batch, prepare


def log_gamma_density(theta):
    return jnp.sum(4.0 * theta["x"] - jnp.exp(theta["x"]))


def test_a_t_is_enough_where_weights_correct_it():
    """Digamma and trigamma of 4 are 1.2561 and 0.2838."""
    target = softcvi.DensityTarget(log_gamma_density, {"x": jnp.zeros(3)})
    result = softcvi.fit(jax.random.key(0), target, steps=1000, progress=False)
    assert result.verdict.trusted
    assert not result.posterior.guide.is_flow
    assert "tried" not in result.choices
    assert result.seconds_start > 0
    x = np.asarray(result.sample(jax.random.key(1), 10_000)["x"])
    np.testing.assert_allclose(x.mean(axis=0), 1.2561, atol=5 * 0.533 / 100)
    np.testing.assert_allclose(x.std(axis=0), np.sqrt(0.2838), rtol=0.05)


def banana(theta):
    x, y = theta["x"][0], theta["x"][1]
    return -0.5 * x**2 - 0.5 * ((y - 1.5 * x**2) / 0.3) ** 2


BENT = softcvi.DensityTarget(banana, {"x": np.zeros(2, np.float32)})
# So many that a flow is trusted.
STEPS = 4000


@pytest.fixture(scope="module")
def bent():
    return softcvi.fit(jax.random.key(0), BENT, steps=STEPS, progress=False)


def test_a_flow_is_trained_where_nothing_simpler_will_do(bent):
    assert bent.posterior.guide.is_flow
    assert bent.choices["guide"].startswith("spline flow")
    assert bent.choices["tried"].startswith("full-rank Student's t")
    assert "not trusted" in bent.choices["tried"]
    assert bent.num_particles == 8
    assert bent.history.step[-1] == STEPS
    assert len(bent.start.modes) == 1


def test_a_fit_of_two_guides_resumes_with_the_same_bits(bent, same_bits, tmp_path):
    path = tmp_path / "fit.ckpt"

    class Second(fitting.Silent):
        """Ctrl-C in the middle of the second guide."""

        begun = 0

        def begin(self, description, total):
            self.begun += 1

        def update(self, step, rate, numbers):
            if self.begun == 2 and step > 20:
                raise KeyboardInterrupt

    key = jax.random.key(0)
    cut = softcvi.fit(key, BENT, steps=STEPS, progress=Second(), checkpoint=path)
    assert cut.status == "interrupted" or "tried" in cut.choices
    assert not same_bits(cut, bent)
    again = softcvi.fit(key, BENT, steps=STEPS, progress=False, checkpoint=path)
    assert same_bits(again, bent)
    np.testing.assert_array_equal(again.history.elbo, bent.history.elbo)


def test_limits_hold_for_all_guides_together():
    limit = fitting.EvaluationLimit(16 * 200)
    result = softcvi.fit(
        jax.random.key(0), BENT, steps=1500, progress=False, stopping=limit
    )
    assert result.steps == 200  # of the first guide, with 16 particles per step
    assert "tried" not in result.choices


def normal(theta):
    return -0.5 * jnp.sum(theta["x"] ** 2)


def test_a_fit_never_ends_worse_than_it_began():
    target = softcvi.DensityTarget(normal, {"x": np.zeros(5, np.float32)})
    perfect = guides.mean_field(target)  # a standard normal
    result = softcvi.fit(
        jax.random.key(0),
        target,
        perfect,
        optimizer=optax.chain(optax.add_noise(9.0, 0.0, 0), optax.sgd(1.0)),
        steps=50,
        start=None,
        progress=False,
    )
    assert "training made the guide worse" in result.message
    np.testing.assert_array_equal(result.posterior.guide.distribution.loc, 0.0)
    assert result.verdict.khat < 0.7


def test_worse_means_a_lower_elbo_and_fewer_effective_draws():
    good, bad = Quality(-1.0, 0.01, 900.0), Quality(-5.0, 0.01, 100.0)
    forward = Quality(-2.0, 0.01, 950.0)  # lower ELBO, better weights
    assert is_worse(bad, good)
    assert not is_worse(good, bad)
    assert not is_worse(forward, good)
    assert not is_worse(Quality(-1.1, 0.1, 100.0), good)  # within the noise
    # A tenth fewer draws, and a heavy tail that was not there.
    right, noisy = Quality(-1.0, 0.01, 900.0, -0.5), Quality(-1.1, 0.01, 820.0, 0.9)
    assert is_worse(noisy, right)
    assert not is_worse(noisy, right._replace(khat=0.9))
    # In high dimension the effective number is one or two by chance.
    assert is_worse(Quality(-50.0, 0.5, 3.0), Quality(-30.0, 0.5, 2.0))
    nothing = quality(np.full(10, np.nan))
    assert nothing.elbo == -np.inf
    assert nothing.ess == 0.0


def two(theta):
    centres = jnp.asarray([[-8.0, 0.0], [8.0, 0.0]])
    return jax.nn.logsumexp(-0.5 * jnp.sum((theta["x"] - centres) ** 2, axis=-1))


def test_a_given_guide_that_leaves_out_a_mode_is_not_trusted():
    target = softcvi.DensityTarget(two, {"x": np.zeros(2, np.float32)})
    result = softcvi.fit(
        jax.random.key(0), target, guides.full_rank(target), steps=500, progress=False
    )
    assert len(result.start.modes) == 2
    kinds = [finding.kind for finding in result.verdict.findings]
    assert Kind.MISSING_MASS in kinds
    assert result.verdict.level == "not trusted"


def mostly_broken(theta):
    """Finite on a small ball only: most steps have no finite label."""
    square = jnp.sum(theta["x"] ** 2)
    return jnp.where(square < 0.1, -0.5 * square, jnp.nan)


def test_more_than_half_of_the_steps_skipped_is_a_failed_fit():
    target = softcvi.DensityTarget(mostly_broken, {"x": np.zeros(2, np.float32)})
    arguments = {"steps": 300, "start": None, "progress": False}
    arguments["learning_rate"] = 1e-6  # stay where it is
    key, guide = jax.random.key(0), guides.mean_field(target)
    with pytest.raises(FitError, match="steps had no finite label"):
        softcvi.fit(key, target, guide, **arguments)
    with pytest.raises(FitError, match="steps had no finite label"):
        softcvi.fit(key, target, guide, starts=2, **arguments)
    result = softcvi.fit(key, target, guide, throw=False, **arguments)
    assert result.status == "failed"
    many = softcvi.fit_many(jax.random.split(key, 2), target, guide, **arguments)
    assert [r.status for r in many] == ["failed", "failed"]


def test_many_fits_share_what_is_the_same(make_target, guide):
    target = make_target()
    keys = jax.random.split(jax.random.key(0), 3)
    batch = Batch(3, guide=False, target=False)
    _, run = prepare(
        keys,
        guide,
        target,
        softcvi.SoftCVI(),
        fitting.paper_optimizer(1e-3),
        10,
        0,
        batch,
    )
    assert run.static[1].observed is target.observed
    assert run.one(2, batch).static[1].observed is target.observed


@pytest.mark.parametrize(
    ("log_prob", "like", "error", "message"),
    [
        (lambda x: 0.0 * jnp.sum(x), np.zeros(0), ValueError, "has no parameters"),
        (lambda x: None, np.zeros(2), TypeError, "returned None"),
        (lambda x: -jnp.sum(x**2), np.zeros(2, np.float16), TypeError, "float16"),
        (
            lambda x: -jnp.sum(x**2),
            jnp.zeros(2, jnp.bfloat16),
            TypeError,
            "bfloat16",
        ),
    ],
)
def test_odd_targets_are_refused_by_name(log_prob, like, error, message):
    target = softcvi.DensityTarget(log_prob, like)
    with pytest.raises(error, match=message):
        softcvi.fit(jax.random.key(0), target, progress=False)
    with pytest.raises(error, match=message):
        softcvi.fit_until(jax.random.key(0), target, progress=False)


def test_draws_of_a_trusted_answer_are_right_in_the_coordinates_of_the_model():
    # Rates of few events, fitted on the log scale: a normal there has a tail that the
    # exponential makes enormous. Weights remove it although k-hat, which looks at the
    # other tail, is high.
    shape = jnp.array([0.5])

    def log_prob(x):
        return jnp.sum((shape - 1) * jnp.log(x["rate"]) - x["rate"])

    space = softcvi.targets.UnconstrainedSpace({"rate": softcvi.targets.positive()})
    target = softcvi.DensityTarget(log_prob, {"rate": jnp.zeros(1)}, space=space)
    guide = softcvi.guides.full_rank(target)
    fit = softcvi.fit(jax.random.key(0), target, guide, steps=2000, progress=False)
    draws = np.asarray(fit.sample(jax.random.key(1), 20_000)["rate"], np.float64)
    # The standard error of the sd is 2 %, that of the weighted one twice as much.
    np.testing.assert_allclose(draws.std(axis=0), np.sqrt(shape), rtol=0.15)
