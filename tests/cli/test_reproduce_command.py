"""``softcvi reproduce`` and ``softcvi references``: what the flags lead to."""

from pathlib import Path

import pytest
import softcvi_experiments as experiments
from softcvi_experiments import Reproduction, appendix, references

from softcvi.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda line: main(line.split())


@pytest.fixture
def calls(monkeypatch):
    """Records how the experiments are called, without running them."""
    made = []

    def record_calls(module, name):
        def record(out, **options):
            made.append((name, out, options))
            return Reproduction([], "a table", [Path("a.png")])

        monkeypatch.setattr(module, f"reproduce_{name}", record)

    for name in ("metrics", "slcp", "marginals", "particles"):
        record_calls(experiments, name)
    for name in ("snr", "neural_additive", "vae", "negatives", "study"):
        record_calls(appendix, name)
    return made


def test_all_flags_of_metrics(run, calls, capsys):
    assert not run(
        "reproduce metrics --tasks slcp,garch --methods softcvi-1,elbo --runs 3 "
        "--steps 70 --particles 4 --negative posterior --recipe default "
        "--reference posteriordb-sbibm --data-dir there --seed 5 --out here"
    )
    [(name, out, options)] = calls
    assert (name, out) == ("metrics", Path("here"))
    assert list(options["tasks"]) == ["slcp", "garch"]
    assert list(options["methods"]) == ["softcvi-1", "elbo"]
    assert options["runs"] == 3
    assert options["data_dir"] == "there"
    assert options["settings"] == experiments.Settings(
        steps=70, num_particles=4, negative="posterior", recipe="default",
        reference="posteriordb-sbibm", seed=5,
    )  # fmt: skip
    printed = capsys.readouterr().out
    assert "a table" in printed
    assert "a.png" in printed


def test_defaults_are_the_functions_own(run, calls):
    assert run("reproduce slcp") == 0
    [(name, out, options)] = calls
    assert (name, out) == ("slcp", Path("softcvi-reproduce-slcp"))
    assert options["settings"] == experiments.Settings()
    assert not {"tasks", "methods", "runs", "particles"} & options.keys()


def test_particles_takes_a_list(run, calls, capsys):
    assert run("reproduce particles --particles 2,4 --tasks garch") == 0
    assert list(calls[0][2]["particles"]) == [2, 4]
    assert run("reproduce metrics --particles 2,4") == 2
    assert "--particles: invalid int: '2,4'" in capsys.readouterr().err


def test_quick_metrics_are_few_short_fits(run, calls):
    assert run("reproduce metrics --quick") == 0
    options = calls[0][2]
    assert options["runs"] == 2
    assert options["settings"].steps == 1000
    assert options["limits"] is False
    assert run("reproduce metrics --quick --runs 3 --steps 7") == 0
    assert calls[1][2]["runs"] == 3
    assert calls[1][2]["settings"].steps == 7


def test_the_seed_reaches_every_figure(run, calls):
    for figure in ("snr", "neural-additive", "vae", "negatives", "slcp"):
        assert run(f"reproduce {figure} --seed 7 --quick") == 0
    assert run("reproduce studies --study alpha --seed 7") == 0
    seeds = [
        options["seed"] if "seed" in options else options["settings"].seed
        for _, _, options in calls
    ]
    assert seeds == [7] * 6


@pytest.mark.slow
def test_the_seed_of_the_neural_additive_model_changes_its_fits(tmp_path):
    settings = appendix.AdditiveSettings(steps=2, every=2, num_draws=5)
    sizes = {"methods": ["elbo"], "widths": [3], "rates": [1e-3], "num_seeds": 1}
    first, second = (
        appendix.reproduce_neural_additive(
            tmp_path, settings=settings, seed=seed, **sizes
        ).records[0]
        for seed in (0, 3)
    )
    assert (first["run"], second["run"]) == (0, 3)
    assert first["validation_score"] != second["validation_score"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("metrics --recipe mine", "no such choice 'mine' (one of paper, default)"),
        ("metrics --reference web", "unknown reference source 'web'; known: builtin"),
        ("metrics --negative flat", "no such choice 'flat' (one of proposal,"),
        ("slcp --tasks garch", "--tasks, which belongs to metrics, marginals,"),
        ("marginals --runs 3", "--runs, which belongs to metrics, slcp, particles"),
        ("snr --steps 3", "unknown option --steps"),
        ("vae --runs 3", "unknown option --runs"),
        ("studies", "required: --study"),
    ],
)
def test_flags_that_do_not_apply_are_refused_by_name(
    run, calls, capsys, flags, message
):
    assert run(f"reproduce {flags}") == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) <= 2
    assert calls == []


def test_flags_of_other_suites_are_refused(run, capsys):
    assert run("bench --suite peers --fits 3") == 2
    assert "--fits: the suite `peers` has no such option" in capsys.readouterr().err
    assert run("bench --suite zoo --quick") == 2
    assert "--quick: the suite `zoo` has no such option" in capsys.readouterr().err


def test_unknown_figure_is_refused(run, capsys):
    assert run("reproduce everything") == 2
    assert "metrics" in capsys.readouterr().err


def test_references_list_and_fetch(run, capsys):
    assert run("references list --only eight_schools,slcp_02") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("eight_schools: 10000 draws, largest R-hat 1.0")
    assert "NUTS" in lines[0]
    assert "importance resampling" in lines[1]
    assert run("references fetch --reference builtin") == 0
    assert "13 files of builtin are at hand" in capsys.readouterr().out
    assert run("references fetch --seed 3") == 2
    assert "--seed, which belongs to build" in capsys.readouterr().err


def test_references_build_passes_its_options_on(run, monkeypatch, capsys):
    made = []
    monkeypatch.setattr(references, "build", lambda *a, **k: made.append((a, k)))
    command = "references build --only slcp_01 --seed 3 --prior-draws 9 --out here"
    assert run(command) == 0
    [(positional, options)] = made
    assert positional == (Path("here"), ["slcp_01"])
    assert (options["seed"], options["prior_draws"]) == (3, 9)
    assert "--data-dir here" in capsys.readouterr().out


def test_missing_reference_says_how_to_get_it(run, tmp_path, capsys):
    assert run(f"references list --data-dir {tmp_path}") != 0
    assert "softcvi references build" in capsys.readouterr().err
