"""One fit by two processes, and what happens when one of them dies."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

_SCRIPT = """
import json, os, signal, sys
import jax
count, number, port, folder, dies_at = sys.argv[1:]
if int(count) > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        f"127.0.0.1:{port}", int(count), int(number), heartbeat_timeout_seconds=20
    )
import jax.numpy as jnp, numpy as np
import softcvi

rng = np.random.default_rng(0)
x = rng.normal(size=(203, 3)).astype(np.float32)
y = (x @ np.array([1.0, -1.0, 0.5]) + rng.normal(size=203)).astype(np.float32)
target = softcvi.targets.DataTarget(
    lambda t: -0.5 * jnp.sum(t**2),
    lambda t, part: -0.5 * (part[1] - part[0] @ t) ** 2,
    jnp.zeros(3), data=(x, y), reference=jnp.zeros(3), block=16,
    devices=jax.devices(),
)


class Dies(softcvi.fitting.AbstractStoppingRule):
    follows_clock = False

    def reason(self, progress):
        if int(dies_at) and progress.step >= int(dies_at):
            os.kill(os.getpid(), signal.SIGKILL)


checkpoint = softcvi.fitting.Checkpoint(f"{folder}/fit.ckpt", every=0.0)
try:
    result = softcvi.fit(
        jax.random.key(2), target, softcvi.guides.full_rank(target), steps=400,
        start=None, progress=False, checkpoint=checkpoint, stopping=Dies(),
    )
except softcvi.FitError as error:
    print(json.dumps({"error": str(error)}), flush=True)
    os._exit(3)  # without waiting for the process that has ended
draws = np.asarray(result.posterior.guide.sample(jax.random.key(1))).tolist()
print(json.dumps({"draw": draws, "steps": result.steps}), flush=True)
"""


def start(count, number, port, folder, dies_at=0):
    words = [str(word) for word in (count, number, port, folder, dies_at)]
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}
    return subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, *words],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answers(processes) -> list[dict]:
    found = []
    for process in processes:
        out, err = process.communicate(timeout=300)
        assert out.strip(), err[-2000:]
        found.append(json.loads(out.splitlines()[-1]))
    return found


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.mark.slow
def test_two_processes_agree_with_one_and_one_goes_on_where_two_ended(tmp_path: Path):
    folders = {name: tmp_path / name for name in ("one", "two", "killed")}
    for folder in folders.values():
        folder.mkdir()
    [alone] = answers([start(1, 0, 0, folders["one"])])
    port = free_port()
    both = answers([start(2, i, port, folders["two"]) for i in range(2)])
    assert both[0] == both[1]
    np.testing.assert_allclose(both[0]["draw"], alone["draw"], rtol=1e-4, atol=1e-4)

    # The second one is killed: the first says so, and ends.
    port = free_port()
    first = start(2, 0, port, folders["killed"])
    second = start(2, 1, port, folders["killed"], dies_at=200)
    out, err = first.communicate(timeout=300)
    second.communicate(timeout=60)
    assert second.returncode == -9
    assert first.returncode not in (0, None)
    said = out + err
    assert "need all 2 processes" in said or "heartbeat" in said.lower(), said[-2000:]

    [resumed] = answers([start(1, 0, 0, folders["killed"])])
    assert resumed["steps"] == 400
    np.testing.assert_allclose(resumed["draw"], alone["draw"], rtol=1e-4, atol=1e-4)
