"""Runs and rows over eight devices of the host, in a process of their own."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

_SCRIPT = """
import json
import jax, jax.numpy as jnp, numpy as np
import softcvi

rng = np.random.default_rng(0)
x = rng.normal(size=(203, 3)).astype(np.float32)
y = (x @ np.array([1.0, -1.0, 0.5]) + rng.normal(size=203)).astype(np.float32)
density = softcvi.DensityTarget(
    lambda t: -0.5 * jnp.sum((y - x @ t) ** 2) - 0.5 * jnp.sum(t**2), jnp.zeros(3)
)


def rows(**options):
    return softcvi.targets.DataTarget(
        lambda t: -0.5 * jnp.sum(t**2),
        lambda t, part: -0.5 * (part[1] - part[0] @ t) ** 2,
        jnp.zeros(3), data=(x, y), reference=jnp.zeros(3), block=16, **options,
    )


found = {"devices": len(jax.local_devices())}
guide = softcvi.guides.full_rank(density)
for runs in (8, 5):
    keys = jax.random.split(jax.random.key(0), runs)
    results = softcvi.fit_many(
        keys, density, guide, steps=100, start=None, progress=False
    )
    # The draws with a fixed key say where every parameter of the guide is.
    found[f"runs-{runs}"] = [
        np.asarray(r.posterior.guide.sample(jax.random.key(1))).tolist()
        for r in results
    ]
    found[f"status-{runs}"] = [r.status for r in results]
alone = [
    softcvi.fit(key, density, guide, steps=100, start=None, progress=False)
    for key in jax.random.split(jax.random.key(0), 8)[:2]
]
found["alone"] = [
    np.asarray(r.posterior.guide.sample(jax.random.key(1))).tolist() for r in alone
]
points = jnp.asarray(rng.normal(size=(4, 3)), jnp.float32)
target = rows(devices=jax.local_devices())
found["log_density"] = jax.vmap(target.log_density)(points).tolist()
found["gradient"] = jax.vmap(jax.grad(target.log_density))(points).tolist()
result = softcvi.fit(
    jax.random.key(2), target, guide, steps=100, start=None, progress=False
)
found["fit"] = np.asarray(result.posterior.guide.sample(jax.random.key(1))).tolist()
print(json.dumps(found))
"""


def _run(devices: int) -> dict:
    flags = f"--xla_force_host_platform_device_count={devices}"
    env = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def found() -> tuple[dict, dict]:
    return _run(1), _run(8)


@pytest.mark.slow
def test_runs_are_the_same_on_one_device_and_on_eight(found):
    one, eight = found
    assert (one["devices"], eight["devices"]) == (1, 8)
    # Five runs leave three devices over, eight fill all of them.
    for runs in (8, 5):
        assert eight[f"status-{runs}"] == ["finished"] * runs
        np.testing.assert_allclose(
            eight[f"runs-{runs}"], one[f"runs-{runs}"], rtol=1e-5, atol=1e-5
        )


@pytest.mark.slow
def test_a_run_of_its_own_is_bit_identical_however_many_devices_there_are(found):
    one, eight = found
    assert eight["alone"] == one["alone"]
    np.testing.assert_allclose(eight["alone"], eight["runs-8"][:2], 1e-5, 1e-5)


@pytest.mark.slow
def test_rows_over_devices_have_the_same_density(found):
    one, eight = found
    # 203 rows: the last device has fewer of its own than the others.
    for name in ("log_density", "gradient"):
        np.testing.assert_allclose(eight[name], one[name], rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(eight["fit"], one["fit"], rtol=1e-4, atol=1e-4)


def test_no_device_is_refused():
    import jax.numpy as jnp

    import softcvi

    with pytest.raises(ValueError, match="devices: must name at least one"):
        softcvi.targets.DataTarget(
            lambda t: -(t**2),
            lambda t, row: -((row - t) ** 2),
            jnp.zeros(()),
            data=jnp.ones(4),
            devices=(),
        )
