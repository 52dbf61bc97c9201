"""Damaged and hostile files are refused by name, without harm."""

import dataclasses
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import warnings
import zipfile

import numpy as np
import pytest

import softcvi
from softcvi.cli import main
from softcvi.cli._data import read_data, read_draws
from softcvi.cli._errors import CommandError
from softcvi.report import FitView, read_fit, save_fit, write_report


def npz(array):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, y=array)
    return buffer.getvalue()


def huge_header():
    """An array of 10^12 numbers, of which the file holds none."""
    member = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    np.lib.format.write_array_header_1_0(member, header)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("y.npy", member.getvalue())
    return buffer.getvalue()


def twice(name):
    member, buffer = io.BytesIO(), io.BytesIO()
    np.save(member, np.zeros(2))
    with zipfile.ZipFile(buffer, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            archive.writestr(name, member.getvalue())
    return buffer.getvalue()


GOOD = npz(np.arange(100.0))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.npz", b"not a zip"),
        ("a.npz", GOOD[:-30]),
        ("a.npz", GOOD[:80] + b"\x00" * 40 + GOOD[120:]),
        ("a.npz", huge_header()),
        ("a.npz", npz(np.array([{"a": 1}], dtype=object))),
        ("a.json", b"[" * 100_000),
        ("a.json", b"\xff\xfe{}"),
        ("a.json", b'{"y": [1, {"b": 2}]}'),
        ("a.json", b'{"y": [1' + b"0" * 400 + b"]}"),
        ("a.csv", b"x\n\xff\xfe\n"),
        ("a.csv", b"x\n" + b'"' + b"1" * 200_000 + b"\n"),
        ("a.csv", b"a,b\n1,2,3\n"),
    ],
)
def test_unreadable_files_are_named_with_a_remedy(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(CommandError, match=name) as caught:
        read_data(path)
    assert len(str(caught.value).splitlines()) <= 2


def test_a_small_file_does_not_unpack_to_gigabytes(tmp_path, monkeypatch):
    monkeypatch.setattr("softcvi.cli._data._SMALL_BYTES", 10_000)
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, y=np.zeros(10**7))
    with pytest.raises(CommandError, match="unpacks to"):
        read_data(path)


@pytest.mark.parametrize(
    "header", ["theta[400000000]", '"theta[3000,3000]"', "theta[99999999999999999999]"]
)
def test_an_index_in_a_header_is_bounded_by_the_columns(tmp_path, header):
    path = tmp_path / "draws.csv"
    path.write_text(f"{header}\n1\n")
    with pytest.raises(CommandError, match="Correct the index"):
        read_draws(path)


def test_what_columns_leave_out_is_bounded_over_all_arrays(tmp_path):
    """Each of them alone would be small enough."""
    path = tmp_path / "draws.csv"
    path.write_text(",".join(f"v{i}[999]" for i in range(9)) + "\n" + "1," * 8 + "1\n")
    with pytest.raises(CommandError, match=r"'v1\[999\]' .* Correct the index"):
        read_draws(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", b'{"y": [1], "n": 1, "y": [2]}'),
        ("a.csv", b"y,n, y\n1,2,3\n"),
        ("a.npz", twice("y.npy")),
    ],
)
def test_two_values_of_one_name_are_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CommandError, match=r"'y(\.npy)?' is there twice"):
        read_data(tmp_path / name)


@pytest.mark.parametrize("name", ["log_q", "log_weight"])
def test_a_parameter_may_be_called_as_an_old_column(tmp_path, name):
    example = FitView.example()
    columns = {name: example.columns["mu"], "mu": example.columns["mu"] + 1}
    save_fit(dataclasses.replace(example, columns=columns), tmp_path)
    assert list(read_fit(tmp_path).columns) == [name, "mu"]
    header, numbers = (tmp_path / "draws.csv").read_text().split("\n", 1)
    (tmp_path / "draws.csv").write_text(header.replace(name, "mu") + "\n" + numbers)
    with pytest.raises(ValueError, match=r"two columns of draws\.csv have one name"):
        read_fit(tmp_path)


def test_numbers_beyond_64_bits_are_read_as_floats(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n100000000000000000000000\n")
    assert read_data(path)["x"].dtype == float


NAMES = [
    'quote"d',
    "line\nbreak",
    "com,ma",
    "'",
    "semi;colon",
    "tab\t",
    "re\rturn",
    "=1+1",
]


def test_names_of_any_kind_come_back_from_draws_csv(tmp_path):
    example = FitView.example()
    columns = {name: example.columns["mu"] + i for i, name in enumerate(NAMES)}
    view = FitView(**{**vars(example), "columns": columns})
    save_fit(view, tmp_path)
    again = read_fit(tmp_path).columns
    assert list(again) == NAMES
    for name in NAMES:
        np.testing.assert_allclose(again[name], columns[name], atol=1e-6)
    assert not [p for p in tmp_path.iterdir() if p.suffix == ".part"]


def damaged(folder):
    """Records of a fit, each damaged in one way."""
    whole = (folder / "result.json").read_text()
    draws = (folder / "draws.csv").read_bytes()
    facts = json.loads(whole)
    for key in facts:
        rest = {k: v for k, v in facts.items() if k != key}
        yield "result.json", json.dumps(rest).encode(), draws
        yield "result.json", json.dumps({**facts, key: [[]]}).encode(), draws
    yield "result.json", b"[" * 200_000, draws
    yield "result.json", b"\xff", draws
    yield "draws.csv", whole.encode(), b""
    yield "draws.csv", whole.encode(), b"\xff\xff"
    yield "draws.csv", whole.encode(), draws[:-7]
    yield "draws.csv", whole.encode(), b"a,b\n" + struct.pack("4d", 1, 2, 3, 4)


def test_damaged_results_are_named_or_read(tmp_path, capsys):
    good = tmp_path / "good"
    save_fit(FitView.example(), good)
    bad = tmp_path / "bad"
    bad.mkdir()
    messages = []
    for _, record, draws in damaged(good):
        (bad / "result.json").write_bytes(record)
        (bad / "draws.csv").write_bytes(draws)
        try:
            write_report(read_fit(bad), tmp_path / "page.html")
        except ValueError as error:
            messages.append(str(error))
    assert len(messages) > 30
    assert all(str(bad) in text and "Fit it again" in text for text in messages)
    assert main(["report", str(bad)]) == 2
    assert "bad: not a fit of this version, or damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("khat", 10**400),
        ("num_particles", 10**400),
        ("seconds", {"run": "long"}),
        ("seconds", {"run": None}),
        ("message", "\ud800"),
        ("log_weights", []),
    ],
)
def test_values_that_no_page_can_show_are_refused_by_name(
    tmp_path, capsys, name, value
):
    save_fit(FitView.example(), tmp_path)
    path = tmp_path / "result.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    assert main(["report", str(tmp_path)]) == 2
    assert f"{tmp_path}: not a fit of this version, or" in capsys.readouterr().err


def test_weights_of_zero_come_back_from_json():
    """JSON has no minus infinity; read as NaN it was the heaviest draw of all."""
    weights = np.log([0.5, 0.5, 1.0])
    weights[2] = -np.inf
    view = dataclasses.replace(FitView.example(), log_weights=weights)
    with tempfile.TemporaryDirectory() as folder:
        save_fit(view, folder)
        np.testing.assert_allclose(read_fit(folder).log_weights, weights)


def test_pages_do_not_follow_settings_that_run_latex(tmp_path, monkeypatch):
    """As a `matplotlibrc` in the current folder would make them."""

    def run(*_, **__):
        raise AssertionError("LaTeX was run")

    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.setattr("matplotlib.texmanager.TexManager.make_dvi", run)
    with matplotlib.rc_context({"text.usetex": True}):
        write_report(FitView.example(), tmp_path / "page.html")


RECORD = {"status": "finished", "khat": 0.3, "seconds": 2.0, "verdict": "trusted"}
COLOURFUL = """\
axes.facecolor: red
savefig.dpi: 30
savefig.bbox: tight
font.size: 30
image.interpolation_stage: no such thing
"""


def drawn(folder):
    """Bytes of the figures that another process draws in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", DRAW], cwd=folder, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    return [(folder / name).read_bytes() for name in ("sweep.png", "metrics.svg")]


DRAW = f"""
from pathlib import Path
from softcvi.report import draw_sweep
from softcvi_experiments._figures import metrics_figure
from softcvi_experiments.figures import save_figure
draw_sweep([("elbo", [{RECORD}])], Path("sweep.png"))
record = {{"task": "slcp", "method": "elbo", "run": 0, "log_prob_reference": -3.0,
    "posterior_mean_accuracy": -1.0, "coverage_nominal": [0.0, 1.0],
    "coverage_actual": [0.0, 1.0]}}
save_figure(metrics_figure([record]), ".", "metrics")
"""


def test_figures_follow_no_settings_of_the_current_folder(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "matplotlibrc").write_text(COLOURFUL)
    assert drawn(tmp_path / "a") == drawn(tmp_path / "b")


@pytest.mark.parametrize("kind", ["bytes", "pipe"])
def test_settings_that_matplotlib_cannot_read_are_named(tmp_path, kind):
    """Importing matplotlib would fail at the first and wait for the second."""
    pytest.importorskip("matplotlib")
    save_fit(FitView.example(), tmp_path / "fit")
    if kind == "bytes":
        (tmp_path / "matplotlibrc").write_bytes(b"\xff\xfe")
    else:
        os.mkfifo(tmp_path / "matplotlibrc")
    command = [sys.executable, "-m", "softcvi", "report", "fit"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "matplotlibrc: matplotlib cannot read" in done.stderr
    assert "Remove them" in done.stderr


def test_what_no_page_can_be_made_from_is_named(tmp_path, capsys, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("of a chart")

    save_fit(FitView.example(), tmp_path)
    monkeypatch.setattr("softcvi.report.write_report", broken)
    assert main(["report", str(tmp_path)]) == 1
    assert f"softcvi report: {tmp_path}: no page can" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["report.html", ".softcvi.lock"])
def test_a_report_does_not_write_through_links_of_a_strangers_folder(
    tmp_path, capsys, name
):
    folder, own = tmp_path / "stranger", tmp_path / "own"
    save_fit(FitView.example(), folder)
    own.write_text("mine")
    (folder / name).symlink_to(own)
    assert main(["report", str(folder)]) == 2
    assert "is a link to" in capsys.readouterr().err
    assert own.read_text() == "mine"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("name", ["draws.csv", "result.json"])
def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path, capsys, name):
    save_fit(FitView.example(), tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    assert main(["report", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
    posterior = tmp_path / "fit.softcvi"
    os.mkfifo(posterior)
    with pytest.raises(ValueError, match=r"fit\.softcvi"):
        softcvi.load(posterior)


@pytest.mark.parametrize("name", ["jinja2", "json", "numpy", "cyclopts"])
def test_modules_in_the_current_folder_are_not_run(tmp_path, name):
    """`python -m` looks there first, and the folder may be a stranger's."""
    save_fit(FitView.example(), tmp_path / "fit")
    (tmp_path / f"{name}.py").write_text("open('was run', 'w')\n")
    command = [sys.executable, "-m", "softcvi", "report", "fit"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    assert not (tmp_path / "was run").exists()
