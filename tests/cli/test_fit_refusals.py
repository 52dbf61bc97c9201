"""``softcvi fit``: what is refused before it costs time, and said of a model."""

import json

import numpy as np
import pytest

from softcvi.cli import _fit_run, main
from softcvi.cli._errors import CommandError
from softcvi.cli._fit_files import matched_reference
from softcvi.cli._model_file import load_target

MODEL = """\
import numpyro
import numpyro.distributions as dist


def model(x, y=None):
    a = numpyro.sample("a", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(a * x, 1), obs=y)


def by_factor(x):
    a = numpyro.sample("a", dist.Normal(0, 1))
    numpyro.factor("likelihood", -((a - x.mean()) ** 2))
"""


class NoFit(Exception):
    """The fit was reached."""


@pytest.fixture
def regression(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    data = {"x": [1.0, 2.0, 3.0], "y": [1.0, 2.0]}
    (tmp_path / "uneven.json").write_text(json.dumps(data))
    (tmp_path / "x.json").write_text(json.dumps({"x": data["x"]}))
    return tmp_path


@pytest.fixture
def no_fit(monkeypatch):
    def refuse(*_):
        raise NoFit("the fit was reached")

    monkeypatch.setattr(_fit_run, "_fit", refuse)


def run(folder, *options, name="model", data="x.json"):
    model = f"{folder / 'model.py'}:{name}"
    argv = ["fit", model, "--data", str(folder / data), "--out", str(folder / "out")]
    return main([*argv, *options])


@pytest.mark.usefixtures("no_fit")
def test_a_misnamed_reference_is_refused_before_the_fit(density, tmp_path, capsys):
    reference = tmp_path / "ref.csv"
    reference.write_text("x[0],X[1]\n1,2\n3,4\n")
    argv = ["fit", f"{density}:log_prob", "--reference", str(reference)]
    assert main([*argv, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert f"--reference {reference}: X[1]: no such parameter. It has no x[1]" in error
    assert "columns as the model does: x[0], x[1]" in error


def test_a_reference_may_lack_parameters_and_have_more(density, tmp_path, capsys):
    target = load_target(density, "log_prob", {})
    draws = {"x": np.zeros((5, 2)), "lp__": np.zeros(5), "who": np.array(["a"] * 5)}
    assert list(matched_reference(tmp_path, draws, target, quiet=False)) == ["x"]
    assert not capsys.readouterr().err
    part = {"x": np.zeros((5, 1)), "lp__": np.zeros(5)}
    matched_reference(tmp_path, part, target, quiet=False)
    assert "has no x[1]; without these there is no coverage" in capsys.readouterr().err
    text = {"x": np.full((5, 2), "a")}
    with pytest.raises(CommandError, match="'x' holds text"):
        matched_reference(tmp_path, text, target, quiet=True)


def test_a_folder_that_cannot_be_written_is_refused_at_once(density, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "out"
    assert main(["fit", f"{density}:log_prob", "--out", str(out)]) == 2
    assert (
        f"--out {out}: cannot be written (not a directory)" in capsys.readouterr().err
    )


def test_a_refused_command_leaves_no_folder(density, tmp_path):
    out = tmp_path / "new" / "out"
    assert main(["fit", f"{density}:gone", "--out", str(out)]) == 2
    assert not (tmp_path / "new").exists()


def test_data_of_unequal_lengths_name_model_and_file(regression, capsys):
    assert run(regression, data="uneven.json") == 2
    first, second = capsys.readouterr().err.splitlines()[-2:]
    assert first.startswith("softcvi fit: model.py:model: TypeError: ")
    assert second.startswith("uneven.json: x has 3 values, y has 2.")


@pytest.mark.usefixtures("no_fit")
@pytest.mark.filterwarnings("ignore:model. nothing is observed")
def test_a_model_that_observes_nothing_is_noted(regression, capsys):
    note = "note: model.py:model observes nothing with these data; the answer is the"
    assert run(regression) == 1
    assert note in capsys.readouterr().err
    assert run(regression, "--quiet") == 1
    assert note not in capsys.readouterr().err
    assert run(regression, name="by_factor") == 1
    assert "observes nothing" not in capsys.readouterr().err


def test_overwriting_loses_nothing_before_the_next_fit_can_begin(regression, capsys):
    old = regression / "out" / "result.json"
    old.parent.mkdir()
    old.write_text("{}")
    assert run(regression, "--overwrite", data="missing.json") == 2
    assert run(regression, "--overwrite", name="no_such_model") == 2
    assert "no_such_model" in capsys.readouterr().err
    assert old.exists()
