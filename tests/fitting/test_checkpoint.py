"""Checkpoints: which fit they belong to, and disks that are full."""

import json
import os
import subprocess
import sys
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi import fitting
from softcvi._atomic import atomic_write
from softcvi.fitting import _drive

QUICK = {"steps": 60, "start": None, "progress": False}


def closing_over(data):
    return softcvi.DensityTarget(
        lambda t: -0.5 * jnp.sum((t["x"] - data) ** 2), {"x": np.zeros(2, np.float32)}
    )


@pytest.mark.parametrize(
    "other",
    [
        np.array([5.0, 5.0], np.float32),
        jnp.array([1.0, 2.5]),
        1.0,
    ],
)
def test_a_checkpoint_of_another_density_is_refused(tmp_path, other, guide):
    """The data is not an argument of the target: its function closes over it."""
    path = tmp_path / "fit.ckpt"
    key = jax.random.key(0)
    mine = closing_over(np.array([1.0, 2.0], np.float32))
    softcvi.fit(key, mine, guide, checkpoint=path, **QUICK)
    with pytest.raises(ValueError, match=r"checkpoint: .* belongs to another fit"):
        softcvi.fit(key, closing_over(other), guide, checkpoint=path, **QUICK)
    same = closing_over(np.array([1.0, 2.0], np.float32))
    assert softcvi.fit(key, same, guide, checkpoint=path, **QUICK).steps == 60


def calling_back(function):
    def log_prob(t):
        out = jax.ShapeDtypeStruct((), np.float32)
        return jax.pure_callback(function, out, t["x"], vmap_method="sequential")

    return softcvi.DensityTarget(log_prob, {"x": np.zeros(2, np.float32)})


@pytest.mark.parametrize("fit", [softcvi.fit, softcvi.fit_many])
def test_a_checkpoint_of_another_function_that_is_called_back_is_refused(
    tmp_path, guide, fit
):
    """The program does not show what the function computes, nor what it closes over."""
    path, key = tmp_path / "fit.ckpt", jax.random.key(0)
    if fit is softcvi.fit_many:
        key = jax.random.split(key, 2)

    def around(centre):
        return calling_back(lambda x: np.float32(-0.5 * np.sum((x - centre) ** 2)))

    fit(key, around(1.0), guide, checkpoint=path, **QUICK)
    with pytest.raises(ValueError, match=r"checkpoint: .* belongs to another fit"):
        fit(key, around(1.5), guide, checkpoint=path, **QUICK)
    fit(key, around(1.0), guide, checkpoint=path, **QUICK)


def test_a_fit_of_a_noisy_function_goes_on(tmp_path, guide):
    path, rng = tmp_path / "fit.ckpt", np.random.default_rng(0)
    noisy = calling_back(lambda x: np.float32(rng.normal() - 0.5 * np.sum(x**2)))
    key = jax.random.key(0)
    softcvi.fit(key, noisy, guide, checkpoint=path, **QUICK)
    assert softcvi.fit(key, noisy, guide, checkpoint=path, **QUICK).steps == 60


@pytest.mark.parametrize("step", [-3, 61, 10.5, "many", True])
def test_steps_that_make_no_sense_are_refused(quick, tmp_path, step):
    path = tmp_path / "fit.ckpt"
    quick(steps=60, checkpoint=path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(parts["checkpoint.json"])
    header["states"][0]["step"] = step
    parts["checkpoint.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match=r"checkpoint: .* is damaged \(step"):
        quick(steps=60, checkpoint=path)


def rewritten(path, name, change):
    """A member changed in an archive that is whole."""
    with zipfile.ZipFile(path) as archive:
        parts = {n: archive.read(n) for n in archive.namelist()}
    parts[name] = change(parts[name])
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in parts.items():
            archive.writestr(member, content)


def test_numbers_that_were_changed_are_refused(quick, tmp_path):
    path = tmp_path / "fit.ckpt"
    quick(steps=60, checkpoint=path)
    rewritten(path, "0/0", lambda content: b"\x7f" + content[1:])
    with pytest.raises(ValueError, match=r"fit\.ckpt is damaged .* Delete it"):
        quick(steps=60, checkpoint=path)


def test_a_checkpoint_of_a_version_without_digests_is_read(quick, tmp_path):
    path = tmp_path / "fit.ckpt"
    quick(steps=60, checkpoint=path)

    def without(content):
        header = json.loads(content)
        for entry in header["states"]:
            del entry["sha256"]
        return json.dumps(header).encode()

    rewritten(path, "checkpoint.json", without)
    assert quick(steps=60, checkpoint=path).steps == 60


def test_compressed_and_oversized_members_are_refused(quick, tmp_path):
    path = tmp_path / "fit.ckpt"
    quick(steps=60, checkpoint=path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["0/0"] = bytes(10_000_000)
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(path, "w", method) as archive:
            for name, content in parts.items():
                archive.writestr(name, content)
        with pytest.raises(ValueError, match=r"checkpoint: .* is damaged"):
            quick(steps=60, checkpoint=path)


def test_a_full_disk_is_reported_once_and_the_fit_goes_on(
    quick, tmp_path, monkeypatch, same_bits
):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    path = tmp_path / "fit.ckpt"
    with pytest.warns(UserWarning, match=r"checkpoint: .*fit.ckpt cannot be") as found:
        result = quick(checkpoint=fitting.Checkpoint(path, every=0.0))
    assert len(found) == 1
    assert "No space left" in str(found[0].message)
    assert result.status == "finished"
    assert same_bits(result, quick())
    assert list(tmp_path.iterdir()) == []


def test_writing_is_all_or_nothing(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half():
        with atomic_write(path) as handle:
            handle.write(b"half of the new one")
            raise KeyError

    with pytest.raises(KeyError):
        write_half()
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


_OTHER_PROCESS = """
import sys, jax, jax.numpy as jnp, numpy as np, softcvi
data = np.linspace(-1.0, 1.0, 5).astype(np.float32)
target = softcvi.DensityTarget(
    lambda t: -0.5 * jnp.sum((t["x"] - data) ** 2) - jnp.sum(jax.nn.softplus(t["x"])),
    {"x": np.zeros(5, np.float32)},
)
flow = softcvi.guides.spline_flow(
    target, key=jax.random.key(0), layers=1, width=4, knots=3
)
for guide in (softcvi.guides.full_rank(target), flow):
    path = f"{sys.argv[1]}/{type(guide.distribution).__name__}"
    softcvi.fit(
        jax.random.key(0), target, guide, steps=20, start=None, progress=False,
        checkpoint=path,
    )
"""


@pytest.mark.slow
def test_another_process_knows_its_own_checkpoint(tmp_path):
    """The fingerprint must not depend on addresses or on the order of a hash."""
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", _OTHER_PROCESS, str(tmp_path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr


def test_many_fits_resume_too(guide, target, tmp_path, same_bits):
    keys = jax.random.split(jax.random.key(0), 3)
    whole = softcvi.fit_many(keys, target, guide, **QUICK)
    path = tmp_path / "many.ckpt"

    class Interrupt(fitting.Silent):
        def update(self, step, rate, numbers):
            raise KeyboardInterrupt

    cut = softcvi.fit_many(
        keys, target, guide, **{**QUICK, "progress": Interrupt()}, checkpoint=path
    )
    assert {r.status for r in cut} == {"interrupted"}
    assert cut[0].steps < 60
    again = softcvi.fit_many(keys, target, guide, checkpoint=path, **QUICK)
    assert all(same_bits(a, b) for a, b in zip(again, whole, strict=True))


def test_a_fit_goes_on_from_a_late_step_of_a_loop_in_the_cache(
    quick, tmp_path, monkeypatch
):
    monkeypatch.setattr(_drive, "is_compiling", lambda seconds: False)
    path = tmp_path / "state.npz"

    class Late(fitting.AbstractStoppingRule):
        def reason(self, progress):
            return "late" if progress.step > 1000 else None

    assert 1000 < quick(steps=2000, stopping=Late(), checkpoint=path).steps < 2000
    assert quick(steps=2000, checkpoint=path).steps == 2000


@pytest.mark.parametrize("name", ["", "folder", "pipe", "a" * 300, "a\0b", os.devnull])
def test_what_can_be_no_checkpoint_is_refused_before_any_work(tmp_path, guide, name):
    """And nobody is told to delete a folder or a device."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    target = closing_over(0.0)
    path = os.path.join(tmp_path, name)
    with pytest.raises(
        ValueError, match=r"checkpoint: .*\. Give another path"
    ) as caught:
        softcvi.fit(jax.random.key(0), target, guide, checkpoint=path, **QUICK)
    assert "Delete" not in str(caught.value)
