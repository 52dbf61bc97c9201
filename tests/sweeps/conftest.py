import sys

import pytest

MODELS = '''
import os
import signal
import sys
from pathlib import Path

import jax.numpy as jnp

import softcvi


def load(model, data):
    """A normal whose mean is named; 'deadly' kills its worker once, 'fatal' always."""
    if model == "broken":
        raise ValueError("this model cannot be made")
    if model == "exits":
        sys.exit(0)
    if model == "fatal":
        os.kill(os.getpid(), signal.SIGKILL)
    if model.startswith("deadly"):
        mark = Path(model.partition(":")[2])
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        model = "1.0"
    centre = float(model)
    return softcvi.DensityTarget(
        lambda x: -0.5 * jnp.sum((x - centre) ** 2), jnp.zeros(2)
    )
'''


@pytest.fixture
def load(tmp_path, monkeypatch):
    """A loader in a module that other processes can import."""
    folder = tmp_path / "importable"
    folder.mkdir()
    (folder / "sweep_models.py").write_text(MODELS)
    monkeypatch.syspath_prepend(folder)
    paths = [str(folder), *(p for p in sys.path if p)]
    monkeypatch.setenv("PYTHONPATH", ":".join(paths))
    import sweep_models

    yield sweep_models.load
    del sys.modules["sweep_models"]
