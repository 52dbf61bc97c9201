"""``softcvi reproduce`` and ``softcvi references``: what the flags lead to."""

import argparse
from pathlib import Path

import pytest
import softcvi_experiments as experiments
from softcvi_experiments import Reproduction, references
from softcvi_experiments.cli._references import add_references_parser
from softcvi_experiments.cli._reproduce import add_reproduce_parser


@pytest.fixture
def parse():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    add_reproduce_parser(commands)
    add_references_parser(commands)
    return lambda line: parser.parse_args(line.split())


@pytest.fixture
def calls(monkeypatch):
    """Records how the experiments are called, without running them."""
    made = []
    for name in ("metrics", "slcp", "marginals", "particles"):

        def record(out, name=name, **options):
            made.append((name, out, options))
            return Reproduction([], "a table", [Path("a.png")])

        monkeypatch.setattr(experiments, f"reproduce_{name}", record)
    return made


def test_all_flags_of_metrics(parse, calls, capsys):
    args = parse(
        "reproduce metrics --tasks slcp,garch --methods softcvi-1,elbo --runs 3 "
        "--steps 70 --particles 4 --negative posterior --recipe default "
        "--reference posteriordb-sbibm --data-dir there --seed 5 --out here"
    )
    args.run(args)
    [(name, out, options)] = calls
    assert (name, out) == ("metrics", Path("here"))
    assert options["tasks"] == ["slcp", "garch"]
    assert options["methods"] == ["softcvi-1", "elbo"]
    assert options["runs"] == 3
    assert options["data_dir"] == "there"
    assert options["settings"] == experiments.Settings(
        steps=70, num_particles=4, negative="posterior", recipe="default",
        reference="posteriordb-sbibm", seed=5,
    )  # fmt: skip
    printed = capsys.readouterr().out
    assert "a table" in printed
    assert "a.png" in printed


def test_defaults_are_the_functions_own(parse, calls):
    args = parse("reproduce slcp")
    args.run(args)
    [(name, out, options)] = calls
    assert (name, out) == ("slcp", Path("softcvi-reproduce-slcp"))
    assert options["settings"] == experiments.Settings()
    assert not {"tasks", "methods", "runs", "particles"} & options.keys()


def test_particles_takes_a_list(parse, calls):
    args = parse("reproduce particles --particles 2,4 --tasks garch")
    args.run(args)
    assert calls[0][2]["particles"] == [2, 4]
    args = parse("reproduce metrics --particles 2,4")
    with pytest.raises(ValueError, match="--particles: one number for metrics"):
        args.run(args)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("metrics --recipe mine", "unknown recipe 'mine'; known: paper, default"),
        ("metrics --reference web", "unknown reference source 'web'; known: builtin"),
        ("metrics --negative flat", "unknown negative 'flat'; known: proposal"),
        ("slcp --tasks garch", "--tasks: the figure `slcp` has one task"),
        ("marginals --runs 3", "--runs: the figure `marginals` shows one run"),
    ],
)
def test_bad_flags_are_one_line_errors(parse, calls, flags, message):
    args = parse(f"reproduce {flags}")
    with pytest.raises(ValueError, match=message) as error:
        args.run(args)
    assert "\n" not in str(error.value)
    assert calls == []


def test_unknown_figure_is_refused(parse, capsys):
    with pytest.raises(SystemExit):
        parse("reproduce everything")
    assert "metrics" in capsys.readouterr().err


def test_references_list_and_fetch(parse, capsys):
    args = parse("references list --only eight_schools,slcp_02")
    args.run(args)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("eight_schools: 10000 draws, largest R-hat 1.0")
    assert "NUTS" in lines[0]
    assert "importance resampling" in lines[1]
    args = parse("references fetch --reference builtin")
    args.run(args)
    assert "13 files of builtin are at hand" in capsys.readouterr().out


def test_references_build_passes_its_options_on(parse, monkeypatch, capsys):
    made = []
    monkeypatch.setattr(references, "build", lambda *a, **k: made.append((a, k)))
    args = parse("references build --only slcp_01 --seed 3 --prior-draws 9 --out here")
    args.run(args)
    [(positional, options)] = made
    assert positional == (Path("here"), ["slcp_01"])
    assert (options["seed"], options["prior_draws"]) == (3, 9)
    assert "--data-dir here" in capsys.readouterr().out


def test_missing_reference_says_how_to_get_it(parse, tmp_path):
    args = parse(f"references list --data-dir {tmp_path}")
    with pytest.raises(references.ReferenceFileError, match="softcvi references build"):
        args.run(args)
