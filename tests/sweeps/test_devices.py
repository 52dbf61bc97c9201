"""Each process of a sweep has an accelerator of its own."""

import os
import time

import pytest

from softcvi.sweeps import DaskExecutor, ProcessExecutor, _devices


def visible(batch):
    """Which device this worker sees, and which worker it is."""
    time.sleep(1.0)  # so that no worker takes all batches
    return os.environ["CUDA_VISIBLE_DEVICES"], os.getpid()


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with two GPUs, as far as its files go."""
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    monkeypatch.setattr(_devices, "_DRIVER", tmp_path)
    monkeypatch.setattr(_devices, "_has_plugin", lambda: True)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)


def test_devices_are_those_that_jax_would_use(machine, monkeypatch):
    assert _devices.accelerators() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert _devices.accelerators() == ["3", "5"]
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert _devices.accelerators() == []


def test_without_a_plugin_for_them_there_are_none(machine, monkeypatch):
    monkeypatch.setattr(_devices, "_has_plugin", lambda: False)
    assert _devices.accelerators() == []


@pytest.mark.slow
@pytest.mark.parametrize("make", [ProcessExecutor, DaskExecutor])
def test_each_worker_sees_one_device(make, machine):
    executor = make()
    assert executor.workers == 2
    found = [outcome.value for outcome in executor.run(visible, list(range(6)))]
    assert {device for device, _ in found} == {"0", "1"}
    # A worker keeps its device.
    assert len(set(found)) == 2
