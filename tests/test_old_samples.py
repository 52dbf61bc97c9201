"""Files of earlier versions load; posteriors have tests of their own.

The samples were written by version 0.1.0: ``old.checkpoint`` before states had a
checksum, the others since.
"""

import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from softcvi import DensityTarget, guides
from softcvi.adapters import AskTellSession
from softcvi.fitting import Checkpoint
from softcvi.fitting._checkpoint import CheckpointFile
from softcvi.fitting._loop import LoopState
from softcvi.report import read_fit
from softcvi.sweeps import RecordStore

SAMPLES = Path(__file__).parent / "samples"


@pytest.mark.parametrize(
    ("name", "elbo"),
    [("old.checkpoint", None), ("new.checkpoint", None), ("first.checkpoint", -1.5)],
)
def test_a_checkpoint_of_each_format_is_read(tmp_path, name, elbo):
    shutil.copy(SAMPLES / name, tmp_path)
    zeros = jnp.zeros(3, jnp.float32)
    empty = LoopState(zeros, (zeros,), jnp.ones((2, 5), jnp.float32))
    file = CheckpointFile(Checkpoint(tmp_path / name))
    state, step, first = file.read(empty, "a fit", 10)
    assert (step, first) == (7, elbo)
    np.testing.assert_array_equal(state.params, [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(state.optimizer_state[0], 1.0)
    np.testing.assert_array_equal(state.history, 0.0)


def test_an_ask_and_tell_session_goes_on(tmp_path):
    shutil.copy(SAMPLES / "session.softcvi", tmp_path)
    target = DensityTarget(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2, np.float32))
    session = AskTellSession(
        jax.random.key(0),
        guides.mean_field(target),
        budget=8,
        steps=1,
        path=tmp_path / "session.softcvi",
    )
    np.testing.assert_array_equal(session.importance().log_p, np.arange(4.0))
    assert np.shape(session.ask(2)) == (2, 2)


def test_records_are_read():
    records = RecordStore(SAMPLES).all()
    assert [record["id"] for record in records] == ["a", "b", "c"]
    assert records[2]["name"] == 'ß\n"quoted"'
    assert records[0]["made"]["softcvi"] == "0.1.0"


def test_a_fit_is_read():
    view = read_fit(SAMPLES / "fit")
    assert (view.khat, view.level) == (0.21, "trusted")
    assert {len(column) for column in view.columns.values()} != {0}
