"""Mistakes in models that would otherwise give a wrong answer without a word."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import softcvi
from softcvi.adapters import from_numpyro

X = np.linspace(-1.0, 1.0, 12)
Y = 2.0 * X


def line(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0, 5))
    with numpyro.plate("rows", len(x)):
        numpyro.sample("y", dist.Normal(slope * x, 1), obs=y)


def test_a_column_of_data_against_a_row_of_means_speaks_against_the_answer():
    with pytest.warns(UserWarning, match=r"site 'y'.*broadcast to \(12, 12\)"):
        target = from_numpyro(line, X, Y[:, None])
    assert "every datum is compared" in target.model_warnings[0]
    evidence = softcvi.diagnostics.Evidence(model_warnings=target.model_warnings)
    assert not softcvi.diagnostics.judge(evidence).trusted
    assert from_numpyro(line, X, Y).model_warnings == ()


def test_nothing_more_is_tried_where_only_the_model_is_to_blame():
    with pytest.warns(UserWarning, match="broadcast"):
        target = from_numpyro(line, X, Y[:, None])
    key = jax.random.key(0)
    result = softcvi.fit(key, target, steps=500, progress=False)
    assert result.verdict.is_about_model
    assert "tried" not in result.choices
    answer = softcvi.fit_until(key, target, steps=500, progress=False)
    assert len(answer.attempts) == 1
    assert not answer.trusted


def test_numpyros_warning_of_a_missing_plate_reaches_the_user():
    def model(y):
        with numpyro.plate("columns", 3):
            mu = numpyro.sample("mu", dist.Normal(0, 1).expand([12, 3]))
            numpyro.sample("y", dist.Normal(mu, 1), obs=y)

    with pytest.warns(UserWarning, match="Missing a plate statement"):
        target = from_numpyro(model, np.zeros((12, 3)))
    # The density is the same with or without the plate.
    assert target.model_warnings == ()


def test_data_of_the_wrong_length_name_the_site():
    with pytest.raises(TypeError, match=r"site 'y'.*\(9,\).*\(12,\).*'rows' of 12"):
        from_numpyro(line, X, Y[:9])


def test_forgotten_data_are_said_and_speak_against_the_answer():
    with pytest.warns(UserWarning, match=r"nothing is observed.*argument y"):
        target = from_numpyro(line, X)
    assert target.model_warnings

    def funnel():
        scale = numpyro.sample("scale", dist.Normal(0, 3))
        numpyro.sample("x", dist.Normal(0, jnp.exp(scale / 2)))

    assert from_numpyro(funnel).model_warnings == ()


def test_constants_are_data_and_not_draws():
    def model(x, y):
        slope = numpyro.sample("slope", dist.Normal(0, 5))
        numpyro.deterministic("design", x)
        numpyro.deterministic("twice", 2 * slope)
        numpyro.sample("y", dist.Normal(slope * x, 1), obs=y)

    target = from_numpyro(model, X, Y)
    shown = target.describe({"slope": jnp.ones(())})
    assert set(shown) == {"slope", "twice"}
    np.testing.assert_allclose(target.constant_data()["design"], X, rtol=1e-6)


def test_mutable_state_is_refused_by_name():
    def model(y):
        numpyro.primitives.mutable("counter", {"n": 0})
        numpyro.sample("mu", dist.Normal(0, 1))

    with pytest.raises(ValueError, match=r"\['counter'\] are mutable state"):
        from_numpyro(model, Y)


def slopes(group, x, y):
    """Varying intercepts and slopes with an LKJ prior on their correlation."""
    scales = numpyro.sample("scales", dist.HalfNormal(1).expand([2]).to_event(1))
    factor = numpyro.sample("factor", dist.LKJCholesky(2, 2.0))
    centre = numpyro.sample("centre", dist.Normal(0, 5).expand([2]).to_event(1))
    with numpyro.plate("group", 5):
        effects = numpyro.sample(
            "effects",
            dist.MultivariateNormal(centre, scale_tril=scales[:, None] * factor),
        )
    numpyro.sample(
        "y", dist.Normal(effects[group, 0] + effects[group, 1] * x, 0.5), obs=y
    )


@pytest.mark.slow
def test_varying_slopes_with_an_lkj_prior_are_non_centred():
    group = np.repeat(np.arange(5), 4)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=20), rng.normal(size=20)
    with jax.enable_x64(True):
        target = from_numpyro(slopes, group, x, y)
        plain = from_numpyro(slopes, group, x, y, decentre=False)
        assert target.space.decentred == ("effects",)
        assert target.notes == ()
        u = target.initial_particle(jax.random.key(0))
        x, log_det = target.space.to_model_and_log_det(u)
        again, inverse = target.space.from_model_and_log_det(x)
        np.testing.assert_allclose(again["effects"], u["effects"], rtol=1e-8)
        np.testing.assert_allclose(inverse, -log_det, rtol=1e-8)
        other, other_det = plain.space.from_model_and_log_det(x)
        np.testing.assert_allclose(
            target.log_density(u) - log_det,
            plain.log_density(other) + other_det,
            rtol=1e-8,
        )


def test_what_cannot_be_standardised_is_fitted_as_written_with_a_note(monkeypatch):
    from softcvi.adapters.numpyro import _decentre

    def model():
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        numpyro.sample("x", dist.Normal(mu, 1).expand([3]))

    def broken(fn):
        raise RuntimeError("no location here")

    whole = _decentre.standardising
    calls = []

    def fails_later(fn):
        calls.append(1)
        return whole(fn) if len(calls) <= 2 else broken(fn)

    monkeypatch.setattr(_decentre, "standardising", fails_later)
    target = from_numpyro(model)
    assert "site 'x' is fitted as the model writes it" in target.notes[0]
    assert np.isfinite(target.log_density({"mu": 0.0, "x": jnp.zeros(3)}))


def test_warnings_of_the_model_itself_are_not_hidden():
    def model(y):
        warnings.warn("units look wrong", stacklevel=1)
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(mu, 1), obs=y)

    with pytest.warns(UserWarning, match="units look wrong"):
        from_numpyro(model, Y)


def test_a_start_takes_models_that_close_over_numpy_arrays():
    group = np.repeat(np.arange(3), 4)

    def model(y):
        with numpyro.plate("groups", 3):
            effect = numpyro.sample("effect", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(effect[group], 1.0), obs=y)

    report = softcvi.starts.Explore().find(jax.random.key(0), from_numpyro(model, Y))
    exact = Y.reshape(3, 4).sum(1) / 5
    np.testing.assert_allclose(report.modes[0].mean, exact, atol=0.05)
