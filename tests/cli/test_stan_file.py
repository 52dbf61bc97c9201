"""``softcvi fit model.stan``: read by Stan's own reader."""

import json

import pytest

from softcvi.cli import main
from softcvi.cli._model_file import ModelFile

PROGRAM = "data { real y; } parameters { real mu; } model { y ~ normal(mu, 1); }"


@pytest.fixture
def stan(tmp_path):
    (tmp_path / "normal.stan").write_text(PROGRAM)
    (tmp_path / "data.json").write_text('{"y": 1.5}')
    return tmp_path


def test_a_stan_program_goes_to_from_stan_with_its_data(stan, monkeypatch, capsys):
    seen = []

    def refuse(path, data):
        seen.append((path.name, data.name))
        raise ValueError("Stan says no")

    monkeypatch.setattr("softcvi.adapters.from_stan", refuse)
    model, data = str(stan / "normal.stan"), str(stan / "data.json")
    argv = ["fit", model, "--data", data, "--out", str(stan / "out")]
    assert main(argv) == 2
    assert seen == [("normal.stan", "data.json")]
    assert "normal.stan: Stan says no" in capsys.readouterr().err
    assert main([*argv, "--kind", "numpyro"]) == 2
    assert "normal.stan is a Stan program" in capsys.readouterr().err
    assert str(ModelFile.parse(model, None)) == "normal.stan:normal"


@pytest.mark.slow
def test_a_stan_program_is_fitted(stan):
    pytest.importorskip("httpstan")
    model, data = str(stan / "normal.stan"), str(stan / "data.json")
    argv = ["fit", model, "--data", data, "--steps", "500", "--quiet"]
    assert main([*argv, "--out", str(stan / "out")]) == 0
    facts = json.loads((stan / "out" / "result.json").read_text())
    assert facts["level"] == "trusted"
    # A flat prior: the posterior is normal(1.5, 1); errors of 4000 draws.
    assert abs(facts["estimates"]["mu"]["mean"] - 1.5) < 0.1
