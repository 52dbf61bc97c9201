"""``softcvi fit``: what it writes, resumes and refuses."""

import json

import jax
import numpy as np
import pytest

import softcvi
from softcvi.cli import _fit_run, main
from softcvi.cli._data import read_draws
from softcvi.cli._progress import double_precision
from softcvi.fitting import AbstractReporter

FILES = {"result.json", "draws.csv", "posterior.softcvi", "draws.nc", "report.html"}


class InterruptAfter(AbstractReporter):
    """Ctrl-C at the first report, as a user's would arrive between chunks."""

    def begin(self, description, total):
        pass

    def update(self, step, rate, numbers):
        raise KeyboardInterrupt

    def end(self):
        pass


def fit(density, out, *options):
    model = f"{density}:log_prob"
    argv = ["fit", model, "--guide", "mean-field", "--steps", "400", "--out", str(out)]
    return main([*argv, *options])


def refuse_another_seed(density, out, capsys):
    """With the record in the folder, and with the checkpoint alone."""
    assert fit(density, out, "--resume", "--seed", "1") == 2
    error = capsys.readouterr().err
    assert "--seed 0 (now 1)" in error
    assert "--overwrite" in error
    record = (out / "result.json").rename(out.parent / "record.json")
    assert fit(density, out, "--resume", "--seed", "1", "--quiet") == 2
    error = capsys.readouterr().err
    assert "--resume: " in error
    assert "belongs to another fit" in error
    assert "Give --overwrite in its place" in error
    record.rename(out / "result.json")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    from tests.cli.conftest import DENSITY

    folder = tmp_path_factory.mktemp("fit")
    path = folder / "density.py"
    path.write_text(DENSITY)
    reference = folder / "reference.npz"
    np.savez(reference, x=np.random.default_rng(0).normal(1.0, 1.0, (500, 2)))
    out = folder / "out"
    assert fit(path, out, "--quiet", "--reference", str(reference)) == 0
    return path, out, reference


def test_files_follow_the_umask(finished):
    modes = {file.stat().st_mode for file in finished[1].iterdir()}
    assert len(modes) == 1


def test_everything_is_written(finished):
    _, out, _ = finished
    assert {file.name for file in out.iterdir()} == FILES
    facts = json.loads((out / "result.json").read_text())
    assert facts["level"] == "trusted"
    assert facts["settings"]["guide"] == "mean-field"
    assert facts["versions"]["jax"] == jax.__version__
    posterior = softcvi.load(out / "posterior.softcvi")
    draws = posterior.sample(jax.random.key(0), 2000)["x"]
    # Three standard errors of 2000 draws, and the fit's own error.
    assert np.allclose(draws.mean(axis=0), 1.0, atol=0.15)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "This answer can be trusted." in page
    assert "Coverage" in page


def test_netcdf_is_read_by_arviz(finished):
    xarray = pytest.importorskip("xarray")
    tree = xarray.open_datatree(finished[1] / "draws.nc", engine="h5netcdf")
    assert tree["posterior"]["x"].shape == (1, 4000, 2)
    tree.close()


def test_a_fit_is_not_overwritten_by_accident(finished, capsys):
    path, out, _ = finished
    assert fit(path, out) == 2
    assert "--resume" in capsys.readouterr().err
    assert fit(path, out, "--resume") == 0
    assert "finished already" in capsys.readouterr().out


def test_another_fit_is_not_resumed(finished, capsys):
    path, out, _ = finished
    assert fit(path, out, "--resume", "--seed", "3", "--alpha", "0.75") == 2
    error = capsys.readouterr().err
    assert "something else: --seed 0 (now 3).\n" in error
    assert "--overwrite" in error
    assert len(error.splitlines()) == 2


def test_report_from_disk(finished, tmp_path, capsys):
    _, out, reference = finished
    page = tmp_path / "one.html"
    argv = ["report", str(out), "--reference", str(reference), "--out", str(page)]
    assert main(argv) == 0
    assert "Coverage" in page.read_text(encoding="utf-8")
    assert main(["report", str(out), str(out), "--out", str(tmp_path / "many")]) == 0
    assert (tmp_path / "many" / "index.html").exists()
    assert main(["report", str(out), str(out), "--out", "x.html"]) == 2
    assert "--together" in capsys.readouterr().err


def test_ctrl_c_keeps_what_was_reached_and_resume_ends_the_same(
    density, tmp_path, monkeypatch, capsys
):
    with monkeypatch.context() as patch:
        patch.setattr(_fit_run, "make_reporter", lambda *_: InterruptAfter())
        assert fit(density, tmp_path / "cut") == 130
    assert "--resume" in capsys.readouterr().out
    names = {file.name for file in (tmp_path / "cut").iterdir()}
    assert names == FILES | {"checkpoint.npz"}
    facts = json.loads((tmp_path / "cut" / "result.json").read_text())
    assert facts["status"] == "interrupted"
    assert 0 < facts["steps"] < 400
    refuse_another_seed(density, tmp_path / "cut", capsys)
    assert fit(density, tmp_path / "cut", "--resume", "--quiet") == 0
    assert {file.name for file in (tmp_path / "cut").iterdir()} == FILES
    assert fit(density, tmp_path / "whole", "--json", "--quiet") == 0
    whole = json.loads(capsys.readouterr().out)
    facts = json.loads((tmp_path / "cut" / "result.json").read_text())
    assert facts["estimates"] == whole["estimates"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--objective", "elbo", "--alpha", "1"), "--alpha"),
        (("--data", "gone.json"), "gone.json: no such file"),
        (("--steps", "0"), "fit: --steps: must be at least 1"),
        (("--alpha", "3"), "fit: --alpha: must lie in [0, 1]"),
        (("--particles", "1"), "fit: --particles: must be at least 2"),
        (("--resume",), "nothing to go on from"),
    ],
)
def test_bad_input_is_two_and_a_line(density, tmp_path, capsys, options, message):
    assert fit(density, tmp_path / "out", *options) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) <= 2


def test_an_error_inside_the_density_names_the_line(density, tmp_path, capsys):
    argv = ["fit", f"{density}:broken", "--out", str(tmp_path / "out")]
    assert main(argv) in (1, 2)
    assert "density.py:15: NameError" in capsys.readouterr().err


def test_double_precision_is_put_back():
    before = jax.config.jax_enable_x64
    with double_precision(True):
        assert jax.config.jax_enable_x64
    assert jax.config.jax_enable_x64 == before


BANANA = """\
import jax.numpy as jnp

like = {"x": jnp.zeros(2)}


def log_prob(p):
    x, y = p["x"]
    return -0.5 * (x / 3) ** 2 - 0.5 * (y - 0.5 * x**2) ** 2
"""


@pytest.mark.slow
def test_a_ladder_writes_its_rungs_and_its_chain(tmp_path, monkeypatch):
    """Flows and short chains are taken away, so that the last rung has to answer."""
    monkeypatch.setattr(softcvi.ladder._flow, "EASY_DIM", 0)
    monkeypatch.setattr(softcvi.ladder._chains, "corrected", lambda best: best)
    path, out = tmp_path / "banana.py", tmp_path / "out"
    path.write_text(BANANA)
    argv = ["fit", f"{path}:log_prob", "--until-khat", "0.05", "--steps", "200"]
    assert main([*argv, "--out", str(out), "--quiet"]) == 0
    facts = json.loads((out / "result.json").read_text())
    assert "NUTS in the " in facts["choices"]["rung 3"]
    assert any("R-hat" in reason for reason in facts["reasons"])
    # Behind a guide of 200 steps the chain is slow, and its R-hat says so.
    draws = read_draws(out / "draws.csv")["x"]
    np.testing.assert_allclose(draws[:, 0].std(), 3.0, rtol=0.4)
    # Page, record and files show the draws that the verdict is about.
    assert facts["draws_are"] == "from chains (NUTS)"
    estimate = facts["estimates"]["x[0]"]
    np.testing.assert_allclose(estimate["sd"], draws[:, 0].std(), rtol=1e-3)
    xarray = pytest.importorskip("xarray")
    with xarray.open_datatree(out / "draws.nc", engine="h5netcdf") as tree:
        stored = np.asarray(tree["posterior"]["x"])[0]
    np.testing.assert_allclose(stored, draws, rtol=1e-6)
    assert "rung 3" in (out / "report.html").read_text(encoding="utf-8")


def test_a_ladder_chooses_its_guides_itself(density, tmp_path, capsys):
    out = tmp_path / "out"
    assert fit(density, out, "--until-khat", "0.7", "--alpha", "0.5") == 2
    error = capsys.readouterr().err
    assert "--until-khat: chooses the guides itself" in error
    assert "--guide, --alpha" in error


def test_several_starts_of_a_guide(density, tmp_path):
    out = tmp_path / "out"
    assert fit(density, out, "--starts", "2", "--quiet") == 0
    facts = json.loads((out / "result.json").read_text())
    assert facts["settings"]["starts"] == 2
    assert facts["status"] == "finished"
