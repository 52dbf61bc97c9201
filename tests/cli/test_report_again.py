"""Reference draws for fits on disk whose coordinates their model defines."""

import json
import shutil

import numpy as np
import pytest

from softcvi.cli import main
from softcvi.report import FitView, read_fit

MODEL = """\
import numpyro
import numpyro.distributions as dist


def model(y):
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    with numpyro.plate("groups", 3):
        a = numpyro.sample("a", dist.Normal(mu, 1.0))
        numpyro.sample("obs", dist.Normal(a, 1.0), obs=y)
"""


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    pytest.importorskip("numpyro")
    folder = tmp_path_factory.mktemp("fitted")
    (folder / "model.py").write_text(MODEL)
    (folder / "data.json").write_text('{"y": [0.5, 1.0, 1.5]}')
    argv = ["fit", f"{folder / 'model.py'}:model", "--data", str(folder / "data.json")]
    argv += ["--guide", "mean-field", "--steps", "20", "--out", str(folder / "out")]
    assert main([*argv, "--quiet"]) == 0
    draws = np.random.default_rng(0).normal(1.0, 1.0, size=(300, 4))
    header = "mu,a[0],a[1],a[2]"
    np.savetxt(folder / "nuts.csv", draws, "%.5f", ",", header=header, comments="")
    return folder


@pytest.fixture
def folder(fitted, tmp_path, monkeypatch):
    """A copy, and a working folder elsewhere."""
    copy = tmp_path / "copy"
    shutil.copytree(fitted, copy)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return copy


def report(folder, reference="nuts.csv", *options):
    argv = ["report", str(folder / "out"), "--reference", str(folder / reference)]
    return main([*argv, "--out", str(folder / "page.html"), *options])


def named(folder, model="model.py", data="data.json"):
    return "--model", f"{folder / model}:model", "--data", str(folder / data)


def has_coverage(folder):
    return "nominal coverage" in (folder / "page.html").read_text(encoding="utf-8")


def test_the_model_is_made_again_from_the_files_that_the_user_names(folder):
    assert report(folder, "nuts.csv", *named(folder)) == 0
    assert has_coverage(folder)


def test_results_run_no_code_even_if_the_model_lies_beside_them(folder, capsys):
    """Neither the recorded file nor one of its name beside the fit is imported."""
    for place in (folder / "model.py", folder / "out" / "model.py"):
        place.write_text(f"open({str(folder / 'ran')!r}, 'w')\n" + MODEL)
    record = folder / "out" / "result.json"
    facts = json.loads(record.read_text())
    del facts["settings"]["model sha256"]
    facts["settings"]["model"] = f"{folder / 'model.py'}:model"
    record.write_text(json.dumps(facts))
    assert report(folder) == 2
    assert not (folder / "ran").exists()
    error = capsys.readouterr().err
    assert "--model" in error
    assert "--data data.json" in error
    assert "--reference to softcvi fit" in error
    assert error.count("\n") == 2


@pytest.mark.parametrize("name", ["model.py", "data.json"])
def test_a_missing_file_is_named(folder, capsys, name):
    (folder / name).unlink()
    assert report(folder, "nuts.csv", *named(folder)) == 2
    error = capsys.readouterr().err
    assert f"{name}: not found" in error
    assert error.count("\n") == 1


def test_a_changed_model_is_not_taken_for_that_of_the_fit(folder, capsys):
    (folder / "model.py").write_text(MODEL.replace("5.0", "50.0"))
    assert report(folder, "nuts.csv", *named(folder)) == 2
    assert "model.py: was changed" in capsys.readouterr().err


def test_flags_without_use_are_refused(folder, capsys):
    out = str(folder / "out")
    assert main(["report", out, "--model", "model.py"]) == 2
    assert "--model: is of use only with --reference" in capsys.readouterr().err
    assert main(["report", out, "--together"]) == 2
    assert "--together" in capsys.readouterr().err


@pytest.mark.parametrize("kept", [["mu"], ["mu", "a[0]"]])
def test_a_reference_of_some_parameters_needs_no_model(folder, kept):
    (folder / "model.py").unlink()
    rows = np.random.default_rng(0).normal(1.0, 1.0, size=(300, len(kept)))
    part = folder / "part.csv"
    np.savetxt(part, rows, "%.5f", ",", header=",".join(kept), comments="")
    assert report(folder, "part.csv") == 0
    assert not has_coverage(folder)


def test_the_library_says_how_to_give_the_model(folder):
    reference = {"mu": np.zeros(9), "a": np.zeros((9, 3))}
    with pytest.raises(ValueError, match="target"):
        read_fit(folder / "out", reference)
    assert isinstance(read_fit(folder / "out"), FitView)


def test_a_kind_of_model_that_there_is_not_is_named(folder, capsys):
    record = folder / "out" / "result.json"
    facts = json.loads(record.read_text())
    facts["settings"]["kind"] = "os.system"
    record.write_text(json.dumps(facts))
    assert report(folder, "nuts.csv", *named(folder)) == 2
    error = capsys.readouterr().err
    assert "out: its model is said to be of the kind 'os.system'" in error
    assert error.count("\n") == 1
