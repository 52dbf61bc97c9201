"""A disk without room for the netCDF file: a note, and every other file."""

import subprocess
import sys

import pytest

CODE = """
import resource, signal, sys
from pathlib import Path
import jax, jax.numpy as jnp, numpy as np
import softcvi
from softcvi.cli._fit_files import write_all
from softcvi.report import FitView

target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), {"x": jnp.zeros(20)})
draws = {"x": np.random.default_rng(0).normal(size=(4000, 20))}

class Answer:
    posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
# Of posterior, page, record and draws, only netCDF needs more than this.
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
written = write_all(Path(sys.argv[1]), Answer, FitView.example(), draws, 0)
print(sorted(path.name for path in written.files), written.notes, written.is_complete)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of file sizes")
def test_a_full_disk_does_not_end_the_process_in_hdf5(tmp_path):
    pytest.importorskip("h5netcdf")
    run = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert "draws.nc was not written: file too large" in run.stdout
    assert "'posterior.softcvi', 'report.html', 'result.json'" in run.stdout
    assert not list(tmp_path.glob("draws.nc*"))


def test_a_full_disk_for_the_draws_keeps_the_answer_and_says_what_to_do(
    tmp_path, monkeypatch, capsys
):
    from softcvi.cli import _fit_files, main

    def no_room(view, folder):
        raise OSError(28, "No space left on device", str(folder / "draws.csv"))

    monkeypatch.setattr(_fit_files, "save_fit", no_room)
    model, out = tmp_path / "normal.py", tmp_path / "out"
    model.write_text("like = {'x': 0.0}\ndef log_prob(t): return -t['x']**2\n")
    words = ["--guide", "mean-field", "--steps", "100", "--out", str(out)]
    assert main(["fit", f"{model}:log_prob", *words]) == 1
    said = capsys.readouterr()
    assert "verdict" in said.out  # the answer itself is shown
    assert "draws.csv was not written: no space left" in said.err
    assert "Make room and give the same command with" in said.err
    assert (out / "posterior.softcvi").exists()
    assert (out / "checkpoint.npz").exists()
