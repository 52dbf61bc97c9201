"""Models and data in files: what they are taken for, and what is said if wrong."""

import os
import sys

import numpy as np
import pytest

from softcvi.cli import main
from softcvi.cli._data import read_data, read_draws
from softcvi.cli._errors import CommandError
from softcvi.cli._model_file import load_target, model_error, split_name

NUMPYRO = """\
import numpyro
import numpyro.distributions as dist


def model(y, sigma=1.0):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    numpyro.sample("y", dist.Normal(mu, sigma), obs=y)
"""
PYMC = """\
import pymc as pm


def model(y):
    with pm.Model() as made:
        mu = pm.Normal("mu", 0, 5)
        pm.Normal("y", mu, 1, observed=y)
    return made
"""
BUILT = """\
import pymc as pm

with pm.Model() as model:
    pm.Normal("z", pm.Normal("mu"), observed=pm.Data("y", [1.0, 2.0]))
"""
REGRESSION = """\
import numpyro
import numpyro.distributions as dist


def model(x, y=None):
    a = numpyro.sample("a", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(a * x, 1), obs=y)
"""
TARGET = """\
import jax.numpy as jnp
from softcvi import DensityTarget

ready = DensityTarget(lambda t: -jnp.sum(t["x"] ** 2), {"x": jnp.zeros(2)})


def made(n):
    return DensityTarget(lambda t: -jnp.sum(t["x"] ** 2), {"x": jnp.zeros(n)})
"""


def write(tmp_path, text, name="model.py"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_names():
    assert split_name("a/b.py:f")[1] == "f"
    assert split_name("a/b.py")[1] == "model"


@pytest.mark.parametrize(
    ("text", "name", "data", "sites"),
    [
        (NUMPYRO, "model", {"y": np.ones(3)}, ("mu",)),
        (TARGET, "ready", {}, ("x",)),
        (TARGET, "made", {"n": 3}, ("x",)),
    ],
)
def test_kinds_are_found_out(tmp_path, text, name, data, sites):
    target = load_target(write(tmp_path, text), name, data)
    assert tuple(target.structure.names) == sites


def test_pymc_is_found_out(tmp_path):
    pytest.importorskip("pymc")
    target = load_target(write(tmp_path, PYMC), "model", {"y": np.ones(3)})
    assert tuple(target.structure.names) == ("mu",)


def test_densities_take_data(density):
    target = load_target(density, "with_data", {"m": np.ones(2)})
    assert float(target.log_density({"x": np.ones(2)})) == 0.0


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("nothing", {}, "has no 'nothing'. It defines: log_prob, with_data, broken"),
        ("with_data", {}, "takes data"),
        ("log_prob", {"m": 1}, "takes one argument"),
    ],
)
def test_what_is_wrong_with_a_density_is_said(density, name, data, message):
    with pytest.raises(CommandError, match=message):
        load_target(density, name, data)


def test_what_is_wrong_with_arguments_is_said(tmp_path):
    path = write(tmp_path, NUMPYRO)
    with pytest.raises(CommandError, match="needs y"):
        load_target(path, "model", {})
    message = "takes no z; it takes y, sigma. Rename or remove it in a.csv"
    with pytest.raises(CommandError, match=message):
        load_target(path, "model", {"z": 1}, source="a.csv")


def test_text_is_refused_by_its_column(tmp_path):
    path = write(tmp_path, NUMPYRO)
    message = r"a.csv: column 'y' holds text \('school 0'\); code it as numbers"
    with pytest.raises(CommandError, match=message):
        load_target(path, "model", {"y": np.array(["school 0"])}, source="a.csv")


def test_a_density_without_a_point_is_told_of_like(tmp_path):
    path = write(tmp_path, "number = 3\ndef log_prob(theta):\n    return theta['x']\n")
    with pytest.raises(CommandError, match=r"needs theta.*\n.*define `like`"):
        load_target(path, "log_prob", {})
    with pytest.raises(CommandError, match="number: is no model but of type int"):
        load_target(path, "number", {})


def test_a_pymc_model_built_already_takes_only_its_containers(tmp_path):
    pytest.importorskip("pymc")
    path = write(tmp_path, BUILT)
    with pytest.raises(CommandError, match=r"only y .*; d.csv has g.\nRemove --data"):
        load_target(path, "model", {"g": np.ones(2)}, source="d.csv")
    assert load_target(path, "model", {"y": np.ones(2)}).structure.names == ("mu",)


def test_lengths_that_differ_are_said(tmp_path):
    path = write(tmp_path, REGRESSION)
    data = {"x": np.ones(4), "y": np.ones(3), "n": 2}
    error = ValueError("incompatible shapes (4,), (3,)")
    text = str(model_error(error, path, "model", data, "d.json"))
    assert text.startswith("model.py:model: ValueError: incompatible shapes")
    assert "\nd.json: x has 4 values, y has 3." in text
    nothing = model_error(RuntimeError("boom"), path, "model", data, "d.json")
    assert str(nothing) == "model.py:model: RuntimeError: boom"


def test_errors_of_the_file_carry_its_line(tmp_path):
    with pytest.raises(CommandError, match=r"model.py:2: ZeroDivisionError"):
        load_target(write(tmp_path, "a = 1\nb = a / 0\n"), "model", {})
    with pytest.raises(CommandError, match=r"model.py:1: SyntaxError"):
        load_target(write(tmp_path, "def f(:\n"), "model", {})
    path = write(tmp_path, "import numpyro\ndef model():\n    return gone\n")
    with pytest.raises(CommandError, match=r"model.py:3: NameError.*gone"):
        load_target(path, "model", {})


def test_a_model_that_changes_the_folder_does_not_move_the_answer(
    tmp_path, monkeypatch
):
    """When it is read, traced and called."""
    away = f"os.chdir({os.fspath(tmp_path / 'away')!r})"
    lines = ["import os", "import jax", "import numpy as np", "like = {'x': 0.0}"]
    lines += [away, "def call(x):", f"    {away}"]
    lines += ["    return np.float32(-0.5 * x**2)", "def log_prob(t):", f"    {away}"]
    lines += ["    out = jax.ShapeDtypeStruct((), np.float32)"]
    lines += ["    how = {'vmap_method': 'sequential'}"]
    lines += ["    return jax.pure_callback(call, out, t['x'], **how)"]
    (tmp_path / "away").mkdir()
    write(tmp_path, "\n".join(lines))
    monkeypatch.chdir(tmp_path)
    words = ("--steps", "50", "--guide", "mean-field", "--quiet", "--out", "out")
    assert main(["fit", "model.py:log_prob", *words]) == 0
    assert (tmp_path / "out" / "result.json").is_file()
    assert not list((tmp_path / "away").iterdir())
    assert not (tmp_path / "out" / ".softcvi.lock").exists()


MUTE = "\n    def __str__(self): raise ValueError('inner')"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("class Odd(BaseException): pass\nraise Odd('stop')\n", ":2: Odd: stop\n"),
        ("raise GeneratorExit\n", ":1: GeneratorExit\n"),
        (f"class Mute(Exception):{MUTE}\nraise Mute\n", ":3: Mute\n"),
        (
            f"class Mute(BaseException):{MUTE}\ndef log_prob(x): raise Mute\n"
            "like = 0.0\n",
            "the model ended the program (Mute())\n",
        ),
    ],
)
def test_no_exception_of_a_model_is_a_raw_one(tmp_path, capsys, code, message):
    path = write(tmp_path, code)
    assert main(["fit", f"{path}:log_prob", "--out", str(tmp_path / "x")]) == 1
    assert message in capsys.readouterr().err


def test_data_in_three_formats(tmp_path):
    (tmp_path / "a.json").write_text('{"n": 2, "y": [[1, 2], [3, 4]]}')
    (tmp_path / "a.csv").write_text("y,kind\n1.5,a\n2.5,b\n")
    np.savez(tmp_path / "a.npz", y=np.arange(3))
    assert read_data(tmp_path / "a.json")["y"].shape == (2, 2)
    assert read_data(tmp_path / "a.json")["n"] == 2
    assert read_data(tmp_path / "a.csv")["y"].tolist() == [1.5, 2.5]
    assert read_data(tmp_path / "a.csv")["kind"].tolist() == ["a", "b"]
    assert read_data(tmp_path / "a.npz")["y"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "not a readable JSON"),
        ("a.json", "{", "python -m json.tool"),
        ("a.csv", "x,y\n1,2\n\n2,NA\n", "column 'y' holds 'NA' in line 4; remove"),
        ("a.csv", "x,y\n1,2\n2,\n", "column 'y' is empty in line 3"),
        ("a.json", "[1]", "Write one such as"),
        ("a.json", '{"y": [1, [2]]}', "'y' is not a rectangular"),
        ("a.csv", "", "not a readable CSV"),
        ("a.csv", "a,b\n1\n", "line 2"),
        ("a.txt", "1", "unknown kind"),
    ],
)
def test_bad_data_names_the_file(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(CommandError, match=message) as caught:
        read_data(path)
    assert name in str(caught.value)


def test_draws_are_gathered(tmp_path):
    path = tmp_path / "draws.csv"
    path.write_text('mu,"b[0,0]","b[0,1]"\n1,2,3\n4,5,6\n')
    draws = read_draws(path)
    assert draws["b"].tolist() == [[[2, 3]], [[5, 6]]]
    (tmp_path / "uneven.json").write_text('{"a": [1, 2], "b": [1]}')
    with pytest.raises(CommandError, match="same length"):
        read_draws(tmp_path / "uneven.json")


def test_a_model_may_change_the_search_path(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    text = "import sys\nsys.path = sys.path[1:]\n" + NUMPYRO
    load_target(write(tmp_path, text), "model", {"y": np.ones(3)})
