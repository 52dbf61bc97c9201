"""The verdict: what must never be trusted, and advice that can be followed."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi import diagnostics, guides
from softcvi.diagnostics import (
    ChainCheck,
    Evidence,
    Kind,
    SamplerEvidence,
    SearchEvidence,
    WeightEvidence,
    examine,
    judge,
)
from softcvi.posterior import psis
from softcvi.targets import Structure

GOOD = WeightEvidence(num_draws=4000, khat=0.1, ess=3500.0)


def normal(x):
    return -0.5 * jnp.sum(x**2)


def posterior_of(log_prob, dim, loc=0.0, scale=1.0):
    like = np.zeros(dim, np.float32)
    target = softcvi.DensityTarget(log_prob, like)
    part = guides.DiagonalNormal(
        jnp.full(dim, loc, jnp.float32), jnp.full(dim, scale, jnp.float32)
    )
    return softcvi.Posterior(guides.VectorGuide(part, target.structure), target)


def kinds(verdict):
    return [finding.kind for finding in verdict.findings]


def test_weights_far_apart_are_the_worst_and_equal_ones_the_best():
    far = np.linspace(-1e6, 0.0, 4000)
    weights, khat = psis(far)
    assert khat == np.inf
    assert np.exp(weights).sum() == pytest.approx(1.0)
    assert psis(np.zeros(4000))[1] == -np.inf
    # Few distinct ratios that carry little: no tail to speak of either.
    few = np.zeros(4000)
    few[:3] = 1.0
    assert psis(few)[1] == -np.inf


def test_a_very_heavy_tail_is_measured_without_overflow():
    log_ratios = 200 * np.random.default_rng(0).exponential(size=2000)
    weights, khat = psis(log_ratios)
    assert 100 < khat < np.inf
    assert np.exp(weights).sum() == pytest.approx(1.0)


def infinite_somewhere(x):
    return jnp.where(x[0] > 1.5, jnp.inf, normal(x))


def never_a_number(x):
    return normal(x) * jnp.nan


def seldom_a_number(x):
    return jnp.where(x[0] > -1.0, normal(x), jnp.nan)


@pytest.mark.parametrize(
    ("log_prob", "kind", "level"),
    [
        (infinite_somewhere, Kind.INFINITE_DENSITY, "not trusted"),
        (never_a_number, Kind.NO_USABLE_WEIGHT, "not trusted"),
        (seldom_a_number, Kind.NOT_A_NUMBER, "caution"),
    ],
)
def test_bad_densities_are_never_trusted(log_prob, kind, level):
    verdict = judge(examine(jax.random.key(0), posterior_of(log_prob, 2)))
    assert kind in kinds(verdict)
    assert verdict.level == level or verdict.level == "not trusted"


@pytest.mark.parametrize(
    ("facts", "kind", "level"),
    [
        ({"status": "failed"}, Kind.FAILED, "not trusted"),
        ({"status": "interrupted"}, Kind.INTERRUPTED, "caution"),
        ({"num_skipped_steps": 60}, Kind.SKIPPED_STEPS, "not trusted"),
        ({"num_skipped_steps": 20}, Kind.SKIPPED_STEPS, "caution"),
        ({"num_bad_densities": 500}, Kind.BAD_DENSITIES, "not trusted"),
        ({"precision": 0.2}, Kind.PRECISION, "not trusted"),
        ({"model_warnings": ("missing plate",)}, Kind.MODEL_WARNING, "caution"),
        (
            {"search": SearchEvidence(64, 9, 8, (1.0,), None, 8 / 64)},
            Kind.MISSING_MASS,
            "not trusted",
        ),
    ],
)
def test_facts_of_the_run_count(facts, kind, level):
    evidence = Evidence(num_steps=100, num_particles=8, weights=GOOD, **facts)
    verdict = judge(evidence)
    assert kinds(verdict) == [kind]
    assert verdict.level == level
    assert len(verdict.advice) == 1
    assert len(verdict.reasons) == 1 + ("search" in facts)


def test_reasons_say_how_far_modes_were_sought():
    search = SearchEvidence(64, 2, 0, (1.0, 30.0), None, 0.001, narrowest_apart=0.2)
    for weights, trusted in ((GOOD, True), (WeightEvidence(4000, 3.0, 5.0), False)):
        verdict = judge(Evidence(weights=weights, search=search))
        assert verdict.trusted == trusted
        said = verdict.reasons[-1]
        for number in ("64 starts", "up to 30", "2 places", "0.1%", "down to 0.2"):
            assert number in said


def test_good_weights_alone_are_trusted_and_no_evidence_is_not():
    assert judge(Evidence(status="finished", weights=GOOD)).trusted
    assert not judge(Evidence()).trusted
    for khat in (np.inf, np.nan):
        bad = WeightEvidence(num_draws=4000, khat=khat, ess=4000.0)
        assert judge(Evidence(weights=bad)).level == "not trusted"


def test_every_kind_of_finding_has_words():
    from softcvi.diagnostics._verdict import _REASONS

    special = {Kind.MODEL_WARNING, Kind.IMPROPER}
    assert set(_REASONS) | special == set(Kind)


def test_label_ess_counts_only_where_labels_are_used():
    """Mini-batch fits with the ELBO have a low label ESS, and lack nothing."""
    facts = {"label_ess": 1.0, "num_particles": 8, "weights": GOOD}
    assert judge(Evidence(uses_labels=False, has_gradient=True, **facts)).trusted
    with_gradient = judge(Evidence(has_gradient=True, **facts))
    assert "softcvi.ELBO()" in " ".join(with_gradient.advice)
    black_box = judge(Evidence(has_gradient=False, **facts))
    assert black_box.level == "not trusted"
    assert "ELBO" not in " ".join(black_box.advice)


@pytest.mark.parametrize(
    ("rhat", "ess", "divergences", "trusted"),
    [
        (1.005, 900.0, 0, True),
        (1.015, 900.0, 0, False),
        (1.005, 390.0, 0, False),
        (1.005, 900.0, 50, False),
        (np.nan, 900.0, 0, False),
    ],
)
def test_one_standard_for_chains(rhat, ess, divergences, trusted):
    chains = SamplerEvidence(rhat, ess, divergences, num_draws=4000)
    # What the guide's labels were does not matter to the draws of a chain.
    verdict = judge(Evidence(sampler=chains, label_ess=1.0))
    assert verdict.trusted == trusted


def test_more_draws_are_made_where_khat_is_near_its_threshold():
    sure = posterior_of(normal, 2)
    near = posterior_of(normal, 3, scale=0.55)
    key = jax.random.key(0)
    assert len(diagnostics.fresh_importance(key, sure).log_q) == 4000
    sample = diagnostics.fresh_importance(key, near, most=16_000)
    assert len(sample.log_q) == 16_000
    # Drawn in two parts, the same numbers as at once.
    whole = near.importance(key, 16_000)
    np.testing.assert_allclose(sample.log_p, whole.log_p, rtol=1e-6)
    assert sample.khat == pytest.approx(whole.khat, abs=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_more_draws_find_what_even_weights_of_few_draws_hide(seed):
    """3 % of the mass is where the guide has 3 of 10 million draws."""

    def log_prob(x):
        return jnp.logaddexp(normal(x), jnp.log(0.06) + normal(x - 5.0))

    posterior, key = posterior_of(log_prob, 1), jax.random.key(seed)
    few = posterior.importance(key, 4_000)
    sample = diagnostics.fresh_importance(key, posterior)
    assert judge(Evidence(weights=WeightEvidence.of(few))).trusted
    assert not judge(Evidence(weights=WeightEvidence.of(sample))).trusted


@pytest.mark.parametrize(("constant", "trusted"), [(0.0, True), (1e9, False)])
def test_large_log_densities_are_not_precise_enough(constant, trusted):
    posterior = posterior_of(lambda x: normal(x) + np.float32(constant), 2)
    evidence = examine(jax.random.key(0), posterior)
    assert (evidence.precision <= 0.1) == trusted
    verdict = judge(evidence)
    assert verdict.trusted == trusted
    if not trusted:
        assert "jax_enable_x64" in " ".join(verdict.advice)


RADIUS, WIDTH = 5.0, 0.1


def ring(x):
    return -0.5 * ((jnp.sqrt(jnp.sum(x**2)) - RADIUS) / WIDTH) ** 2


class Arc(guides.AbstractGuide):
    """An exact sample of a share of a ring: its weights cannot know the rest."""

    share: float = eqx.field(static=True)
    structure: Structure = eqx.field(
        static=True, default=Structure(np.zeros(2, np.float32))
    )

    def _sample(self, key, condition=None):
        one, two = jax.random.split(key)
        angle = jax.random.uniform(one, (), jnp.float32) * 2 * jnp.pi * self.share
        radius = RADIUS + WIDTH * jax.random.normal(two, (), jnp.float32)
        return radius * jnp.stack([jnp.cos(angle), jnp.sin(angle)])

    def _log_prob(self, particle, condition=None):
        radius = jnp.sqrt(jnp.sum(particle**2))
        angle = jnp.arctan2(particle[1], particle[0]) % (2 * jnp.pi)
        inside = angle <= 2 * jnp.pi * self.share
        # A little everywhere, as a flow has.
        edge = jnp.where(inside, 0.0, -20.0)
        return -0.5 * ((radius - RADIUS) / WIDTH) ** 2 - jnp.log(radius) + edge


@pytest.mark.parametrize(("share", "trusted"), [(1.0, True), (0.6, False)])
def test_chains_from_far_out_find_what_the_guide_has_not(share, trusted):
    target = softcvi.DensityTarget(ring, np.zeros(2, np.float32))
    posterior = softcvi.Posterior(Arc(share), target)
    evidence = examine(jax.random.key(0), posterior)
    assert evidence.weights.khat < 0.7
    verdict = judge(evidence)
    assert verdict.trusted == trusted
    assert (Kind.ESCAPED in kinds(verdict)) == (not trusted)


@pytest.mark.parametrize(
    ("loc", "scale", "trusted"),
    [(0.15, 0.94, True), (0.0, 0.85, False), (0.5, 1, False)],
)
def test_chains_speak_for_each_of_many_parameters(loc, scale, trusted):
    posterior = posterior_of(normal, 300, loc, scale)
    verdict = judge(examine(jax.random.key(0), posterior))
    assert verdict.trusted == trusted
    assert Kind.PER_PARAMETER in kinds(verdict)
    assert "mean and standard deviation of each" in str(verdict)


@pytest.mark.parametrize(
    ("share", "memory", "trusted"),
    [
        (0.95, 0.05, True),
        (0.95, 0.9, False),
        (0.8, 0.05, True),
        (0.8, 0.9, False),
        (0.3, 0, False),
    ],
)
def test_a_high_khat_of_mostly_even_weights_needs_chains(share, memory, trusted):
    weights = WeightEvidence(num_draws=4000, khat=1.0, ess=share * 4000)
    chains = ChainCheck(0.0, (1.0, 1.0), 0.8, memory=memory, error=0.1, escaped=0.0)
    verdict = judge(Evidence(dimension=3, weights=weights, chains=chains))
    assert verdict.trusted == trusted


def test_chains_that_resolve_little_do_not_stand_in_for_weights():
    weights = WeightEvidence(num_draws=4000, khat=2.0, ess=5.0)
    blurred = ChainCheck(0.0, (1.0, 1.0), 0.8, memory=0.9, error=0.6)
    verdict = judge(Evidence(dimension=300, weights=weights, chains=blurred))
    assert verdict.level == "not trusted"
    assert Kind.HIGH_KHAT in kinds(verdict)


def test_discrete_values_that_nothing_checked_are_no_reason_to_trust():
    assert judge(Evidence(weights=GOOD)).trusted
    verdict = judge(Evidence(weights=GOOD, has_discrete=True))
    assert verdict.level == "caution"
    assert "discrete" in verdict.reasons[0]
