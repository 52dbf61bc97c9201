"""What the studies and the comparison of negatives must show."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from softcvi_experiments import Settings
from softcvi_experiments._methods import get_objective
from softcvi_experiments.appendix import (
    STUDIES,
    get_study,
    reproduce_negatives,
    reproduce_study,
)
from softcvi_experiments.appendix._variants import DEFAULTS
from softcvi_experiments.tasks import get_task

import softcvi
from softcvi.cli import main
from softcvi.sweeps import RecordStore

pytestmark = pytest.mark.slow


def test_a_posterior_as_negative_is_overconfident():
    covariance = jnp.array([[1.0, 0.9], [0.9, 1.0]])
    precision = jnp.linalg.inv(covariance)
    target = softcvi.DensityTarget(
        lambda t: -0.5 * t["x"] @ precision @ t["x"], {"x": jnp.zeros(2)}
    )
    sd = {}
    for negative in ("proposal", "posterior"):
        results = softcvi.fit_many(
            jr.split(jr.key(0), 4),
            target,
            softcvi.guides.mean_field(target),
            objective=get_objective("softcvi-1", 8, negative),
            steps=2_000,
            start=None,
            progress=False,
        )
        draws = [r.posterior.sample(jr.key(1), 4_000) for r in results]
        sd[negative] = np.mean([np.std(d["x"], axis=0) for d in draws])
    # Reverse KL ends at sqrt(1 - 0.81) = 0.44; forward KL, without bias, at 1.
    assert sd["posterior"] < 0.44
    assert 0.6 < sd["proposal"] < 1.0


def test_both_negatives_are_run_and_compared(tmp_path):
    result = reproduce_negatives(
        tmp_path,
        tasks=["linear_regression"],
        others=[],
        runs=1,
        settings=Settings(steps=3),
        progress=False,
    )
    names = {path.name for path in result.files}
    assert {"negatives.md", "negatives.png", "metrics_posterior_negative.pdf"} <= names
    run = [(record["negative"], record["method"]) for record in result.records]
    assert run == [
        ("proposal", "softcvi-0.75"),
        ("proposal", "softcvi-1"),
        ("posterior", "softcvi-0.75"),
        ("posterior", "softcvi-1"),
    ]
    assert "posterior as negative" in result.table


def test_a_study_has_three_metrics_for_every_variant(tmp_path):
    result = reproduce_study(
        tmp_path,
        study="alpha",
        tasks=["eight_schools"],
        runs=2,
        settings=Settings(steps=400),
        progress=False,
    )
    variants = [variant.name for variant in get_study("alpha")]
    assert len(variants) == 10
    assert [r["method"] for r in result.records] == list(np.repeat(variants, 2))
    for record in result.records:
        assert np.isfinite(record["log_prob_reference"])
        assert np.isfinite(record["posterior_mean_accuracy"])
    ess = {r["method"]: r["label_ess"] for r in result.records}
    assert ess["alpha 0"] < ess["alpha 0.5"] < ess["alpha 1"]
    assert len(RecordStore(tmp_path).all()) == len(result.records)


@pytest.mark.parametrize("study", STUDIES)
def test_every_study_has_the_default_and_objectives_for_tasks(study):
    variants = get_study(study)
    assert sum(variant.name in DEFAULTS for variant in variants) == 1
    assert len({variant.label for variant in variants}) == len(variants)
    for task in ("eight_schools", "linear_regression"):
        for variant in variants:
            assert variant.objective(get_task(task), 4).num_particles == 4


def test_the_command_runs_a_study(tmp_path, capsys):
    study = ["reproduce", "studies", "--study", "temperature", "--steps", "3"]
    study += ["--tasks", "eight_schools", "--runs", "1", "--recipe", "paper"]
    assert main([*study, "--out", str(tmp_path)]) == 0
    assert (tmp_path / "study_temperature.png").is_file()
    assert "| eight_schools | 0.5 " in capsys.readouterr().out
    assert main(["reproduce", "studies", "--out", str(tmp_path)]) == 2
    assert "--study" in capsys.readouterr().err
