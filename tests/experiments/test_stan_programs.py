"""The Stan programs of the study, and posteriordb's own draws for two of them."""

import json
import zipfile
from pathlib import Path

import jax
import numpy as np
import pytest
from softcvi_experiments import stan

import softcvi
from softcvi.adapters import from_stan
from softcvi.sweeps import RecordStore
from tests.adapters.stan.programs import needs_compiler


@pytest.mark.parametrize("name", stan.names())
def test_every_program_is_accepted_with_its_data(name):
    pytest.importorskip("httpstan")
    from softcvi.adapters.stan._data import as_json
    from softcvi.adapters.stan._stanc import as_source, translate

    translated = translate(as_source(stan.path(name)))
    assert "softcvi_stan_model" in translated.cpp
    values = json.loads(as_json(stan.data(name), translated.inputs))
    assert set(values) == set(stan.data(name))


def test_every_file_is_in_the_study():
    files = {path.stem for path in stan.path("garch11").parent.glob("*.stan")}
    assert files == {stan.path(name).stem for name in stan.names()}


def test_an_unknown_program_is_named():
    with pytest.raises(ValueError, match="unknown program 'lda'"):
        stan.target("lda")


def test_the_page_is_that_of_its_records():
    folder = Path(__file__).parents[2] / "results" / "stan"
    records = RecordStore(folder).latest(*stan.Study.identity)
    assert records
    assert (folder / "stan.md").read_text() == stan.page(records)


def test_the_page_counts_what_is_right_and_what_is_wrong():
    sound = {"method": "fit", "seed": 0, "dimension": 2, "seconds": 3.0, "sound": True}
    figures = {"mean_off": 0.2, "sd_low": 1.0, "sd_high": 1.0}
    wrong = {**sound, **figures, "program": "a", "trusted": True, "right": False}
    doubtful = {**wrong, "program": "b", "sound": False}
    failed = {"program": "c", "method": "fit", "seed": 0, "status": "error"}
    page = stan.page([wrong, doubtful, failed])
    assert "right and trusted on 0 of 2 programs; trusted but wrong on 1." in page
    assert "| b (NUTS in doubt) |" in page
    assert "failed" in page


def read_zipped(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read(archive.namelist()[0]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "posterior", "data"),
    [
        ("eight_schools_noncentred", "eight_schools-eight_schools_noncentered", None),
        ("garch11", "garch-garch11", "garch"),
    ],
)
def test_posteriordbs_own_draws(program, posterior, data, public_folder):
    needs_compiler()
    folder = public_folder / "posteriordb"
    data = folder / f"{data or 'eight_schools'}.json.zip"
    with jax.enable_x64(True):
        target = from_stan(stan.path(program), data)
        result = softcvi.fit_until(jax.random.key(0), target, progress=False)
        draws = result.sample(jax.random.key(1), 8000)
    assert result.verdict.trusted
    chains = read_zipped(folder / f"{posterior}.json.zip")
    for full in chains[0]:
        name, _, index = full.partition("[")
        reference = np.concatenate([chain[full] for chain in chains])
        values = np.asarray(draws[name])
        if index:
            values = values[:, int(index.rstrip("]")) - 1]
        shift = (values.mean() - reference.mean()) / reference.std()
        assert abs(shift) < 0.1, full
        np.testing.assert_allclose(
            values.std(), reference.std(), rtol=0.1, err_msg=full
        )
