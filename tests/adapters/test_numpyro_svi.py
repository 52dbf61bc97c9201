import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import softcvi

numpyro = pytest.importorskip("numpyro")
import numpyro.distributions as dist  # noqa: E402
from numpyro.infer import SVI, autoguide  # noqa: E402

from softcvi.adapters import SoftCVILoss, from_numpyro, numpyro_guide  # noqa: E402
from tests.adapters.conftest import EFFECTS, ERRORS, assert_like_nuts  # noqa: E402

DATA = np.array([1.0, 2.0, 3.0, 2.5, 1.5])


def conjugate(y):
    """Two means with known noise: the posterior is normal with correlation."""
    a = numpyro.sample("a", dist.Normal(0, 2))
    b = numpyro.sample("b", dist.LogNormal(0, 0.5))
    numpyro.sample("y", dist.Normal(a, 1), obs=y)
    numpyro.sample("w", dist.LogNormal(jnp.log(b), 0.5), obs=jnp.exp(1.0))


EXACT = {"a": (DATA.sum() / 5.25, 5.25**-0.5), "log b": (0.5, 0.125**0.5)}


def assert_exact(draws):
    for name, values in (("a", draws["a"]), ("log b", jnp.log(draws["b"]))):
        mean, sd = EXACT[name]
        np.testing.assert_allclose(values.mean(), mean, atol=0.15 * sd)
        np.testing.assert_allclose(values.std(), sd, rtol=0.12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "AutoNormal",
        "AutoDiagonalNormal",
        "AutoMultivariateNormal",
        "AutoLowRankMultivariateNormal",
        "AutoIAFNormal",
    ],
)
def test_autoguides_train(name):
    guide = getattr(autoguide, name)(conjugate)
    svi = SVI(conjugate, guide, optax.adam(0.02), SoftCVILoss(num_particles=8))
    result = svi.run(jax.random.key(0), 1500, DATA, progress_bar=False)
    draws = guide.sample_posterior(
        jax.random.key(1), result.params, sample_shape=(4000,)
    )
    assert_exact(draws)
    assert np.all(np.isfinite(result.losses))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("AutoDelta", "no density to contrast"),
        ("AutoLaplaceApproximation", "nothing for a classifier to learn"),
        ("AutoBNAFNormal", "no inverse"),
    ],
)
def test_guides_that_cannot_work_are_refused_with_the_reason(name, why):
    guide = getattr(autoguide, name)(conjugate)
    # As SVI calls it, without the costly set-up of the guide before.
    with pytest.raises(ValueError, match=why):
        SoftCVILoss().loss(jax.random.key(0), {}, conjugate, guide, DATA)


def test_a_point_site_and_a_misspelt_site_are_named():
    def point(y):
        numpyro.sample("a", dist.Delta(numpyro.param("loc", 0.0)))
        numpyro.sample("b", dist.LogNormal(0, 1))

    def misspelt(y):
        numpyro.sample("aa", dist.Normal(0, 1))
        numpyro.sample("b", dist.LogNormal(0, 1))

    for guide, match in ((point, r"\['a'\] are Delta"), (misspelt, r"no site \['a'\]")):
        svi = SVI(conjugate, guide, optax.adam(0.02), SoftCVILoss())
        with pytest.raises(ValueError, match=match):
            svi.run(jax.random.key(0), 1, DATA, progress_bar=False)


@pytest.mark.slow
def test_init_update_evaluate_and_vmapped_runs():
    guide = autoguide.AutoNormal(conjugate)
    svi = SVI(conjugate, guide, optax.adam(0.02), SoftCVILoss())
    svi.init(jax.random.key(0), DATA)  # the guide looks at its model outside of vmap

    def run(key):
        state = svi.init(key, DATA)
        step = lambda state, _: svi.update(state, DATA)  # noqa: E731
        state, _ = jax.lax.scan(step, state, None, length=1000)
        return svi.get_params(state), svi.evaluate(state, DATA)

    params, losses = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(1), 3))
    np.testing.assert_allclose(params["a_auto_loc"], EXACT["a"][0], atol=0.15)
    # The value is the negative ELBO, and so at most the evidence away from it.
    log_evidence = _log_evidence()
    assert np.all(-losses < log_evidence + 0.5)
    assert np.all(-losses > log_evidence - 0.5)


def _log_evidence():
    cov = np.eye(5) + 4 * np.ones((5, 5))
    joint = -0.5 * DATA @ np.linalg.solve(cov, DATA)
    joint += -0.5 * np.linalg.slogdet(2 * np.pi * cov)[1]
    return joint - 0.5 / 0.5 - 0.5 * np.log(2 * np.pi * 0.5) - 1.0


@pytest.mark.slow
def test_eight_schools_through_plain_svi(non_centred, schools_target):
    guide = autoguide.AutoMultivariateNormal(non_centred)
    rate = optax.cosine_decay_schedule(0.02, 6000)
    svi = SVI(non_centred, guide, optax.adam(rate), SoftCVILoss(8, alpha=0.75))
    result = svi.run(
        jax.random.key(0), 6000, ERRORS, effects=EFFECTS, progress_bar=False
    )
    fitted = numpyro_guide(guide, schools_target, result.params)
    posterior = softcvi.Posterior(fitted, schools_target)
    sample = posterior.importance(jax.random.key(1), 4000)
    assert sample.khat < 0.7
    assert_like_nuts(posterior.resample(jax.random.key(2), 20_000))


def test_discrete_sites_where_the_elbo_warns():
    def coin():
        z = numpyro.sample("z", dist.Bernoulli(0.3))
        numpyro.sample("y", dist.Normal(jnp.where(z == 1, 1.0, -1.0), 1.0), obs=0.5)

    def guide():
        logit = numpyro.param("logit", 0.0)
        numpyro.sample("z", dist.Bernoulli(logits=logit))

    svi = SVI(coin, guide, optax.adam(0.05), SoftCVILoss(num_particles=16))
    result = svi.run(jax.random.key(0), 1500, progress_bar=False)
    exact = np.log(0.3 / 0.7) + 2 * 0.5
    np.testing.assert_allclose(result.params["logit"], exact, atol=0.05)
    with pytest.warns(UserWarning, match="does not support models with discrete"):
        SVI(coin, guide, optax.adam(0.05), numpyro.infer.Trace_ELBO()).init(
            jax.random.key(0)
        )


def linear_decoder(x, width=2):
    """The autoencoder of NumPyro's examples, with linear maps as its networks."""
    weight = numpyro.param("weight", 0.1 * jnp.ones((width, x.shape[1])))
    with numpyro.plate("batch", 200, subsample_size=x.shape[0]):
        z = numpyro.sample("z", dist.Normal(0, 1).expand([width]).to_event(1))
        numpyro.sample("x", dist.Normal(z @ weight, 0.5).to_event(1), obs=x)


def encoder(x, width=2):
    weight = numpyro.param("encoder", jnp.eye(x.shape[1], width) * 0.1)
    scale = numpyro.param("scale", 0.7, constraint=dist.constraints.positive)
    with numpyro.plate("batch", 200, subsample_size=x.shape[0]):
        numpyro.sample("z", dist.Normal(x @ weight, scale).to_event(1))


@pytest.mark.slow
def test_model_parameters_train_by_mini_batches_of_local_latents():
    rng = np.random.default_rng(0)
    truth = np.array([[1.0, -1.0, 0.5], [0.3, 0.8, 1.2]])
    x = rng.normal(size=(200, 2)) @ truth + 0.5 * rng.normal(size=(200, 3))
    svi = SVI(linear_decoder, encoder, optax.adam(0.02), SoftCVILoss(16))
    state = svi.init(jax.random.key(0), x[:50])
    batches = jnp.asarray(x, jnp.float32).reshape(4, 50, 3)

    @jax.jit
    def train(state):
        step = lambda s, i: svi.update(s, batches[i % 4])  # noqa: E731
        return jax.lax.scan(step, state, jnp.arange(2000))

    state, _ = train(state)
    weight = np.asarray(svi.get_params(state)["weight"], np.float64)
    # Identified up to a rotation: compare what the model says about the data.
    implied = weight.T @ weight + 0.25 * np.eye(3)
    np.testing.assert_allclose(implied, np.cov(x.T, bias=True), atol=0.2)


def test_mini_batches_of_global_latents_warn_and_name_the_elbo():
    def model(x):
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        with numpyro.plate("rows", 100, subsample_size=10):
            numpyro.sample("x", dist.Normal(mu, 1), obs=x)

    svi = SVI(model, autoguide.AutoNormal(model), optax.adam(0.1), SoftCVILoss())
    with pytest.warns(UserWarning, match=r"plate 'rows'.*Trace_ELBO"):
        svi.run(jax.random.key(0), 1, jnp.zeros(10), progress_bar=False)


@pytest.mark.slow
def test_numpyro_guides_are_scored_where_they_draw():
    target = from_numpyro(conjugate, DATA)
    for name in ("AutoMultivariateNormal", "AutoIAFNormal"):
        auto = getattr(autoguide, name)(conjugate)
        guide = numpyro_guide(auto, target)
        keys = jax.random.split(jax.random.key(0), 10)
        draws, log_q = jax.jit(jax.vmap(guide.sample_and_log_prob))(keys)
        vectors = jnp.stack([draws["a"], draws["b"]], axis=1)
        theirs = auto.get_posterior(guide.fitted_params()).log_prob(vectors)
        np.testing.assert_allclose(log_q, theirs, atol=1e-3)
    result = softcvi.fit(
        jax.random.key(1),
        target,
        numpyro_guide(autoguide.AutoNormal(conjugate), target),
        steps=1500,
        learning_rate=0.02,
        progress=False,
    )
    assert_exact(result.posterior.sample(jax.random.key(2), 4000))
    assert "a_auto_loc" in result.posterior.guide.fitted_params()


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="num_particles"):
        SoftCVILoss(num_particles=1)
    with pytest.raises(ValueError, match="alpha"):
        SoftCVILoss(alpha=1.5)


def _trained(guide, steps=400, **options):
    loss = SoftCVILoss(num_particles=8, **options)
    svi = SVI(conjugate, guide, optax.adam(0.03), loss)
    result = svi.run(jax.random.key(0), steps, DATA, progress_bar=False)
    assert np.all(np.isfinite(result.losses))
    return result.params


def test_particles_of_another_proposal_and_in_blocks():
    wide = softcvi.guides.mean_field(from_numpyro(conjugate, DATA), scale=1.0)
    defensive = softcvi.objectives.DefensiveProposal(wide, share=0.3)
    params = _trained(autoguide.AutoNormal(conjugate), proposal=defensive)
    mean, sd = EXACT["a"]
    assert abs(params["a_auto_loc"] - mean) < 0.5 * sd
    blocks = softcvi.objectives.SiteBlocks(sets=2)
    params = _trained(autoguide.AutoMultivariateNormal(conjugate), blocks=blocks)
    assert abs(params["auto_loc"][0] - mean) < 0.5 * sd


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("AutoNormal", [0, 1]),
        ("AutoDiagonalNormal", [0, 1]),
        ("AutoMultivariateNormal", [0, 1]),
        ("AutoLowRankMultivariateNormal", [-1, -1, -1]),
        ("AutoIAFNormal", [0, 1]),
    ],
)
def test_draws_from_noise_are_draws_of_the_guide(name, owner):
    target = from_numpyro(conjugate, DATA)
    guide = numpyro_guide(getattr(autoguide, name)(conjugate), target)
    assert guide.has_noise
    assert guide.noise_owner().tolist() == owner
    keys = jax.random.split(jax.random.key(0), 2_000)
    made = jax.vmap(lambda k: guide.from_noise(guide.sample_noise(k)))(keys)
    drawn = jax.vmap(guide.sample)(keys)
    for site in ("a", "b"):
        error = 4 * jnp.std(drawn[site]) * (2 / 2_000) ** 0.5
        assert abs(jnp.mean(made[site]) - jnp.mean(drawn[site])) < error
        np.testing.assert_allclose(jnp.std(made[site]), jnp.std(drawn[site]), rtol=0.15)


def test_a_guide_without_noise_is_told_so():
    def guide(y):
        numpyro.sample("a", dist.Gamma(2.0, 1.0))
        numpyro.sample("b", dist.LogNormal(0.0, 1.0))

    target = from_numpyro(conjugate, DATA)
    assert not numpyro_guide(guide, target).has_noise
    with pytest.raises(ValueError, match="blocks: a NumPyroGuide does not make"):
        _trained(guide, 1, blocks=softcvi.objectives.SiteBlocks())
