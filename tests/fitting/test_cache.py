"""Programs kept on disk: the next process reads them, and nobody hears of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from softcvi.fitting._cache import remove_oldest

_CODE = """
import jax, sys, softcvi
softcvi.enable_compilation_cache(sys.argv[1])
jax.jit(lambda x: x.at[0].add(1.0))(jax.numpy.arange(4.0)).block_until_ready()
"""


@pytest.fixture
def in_a_process(tmp_path):
    def run() -> subprocess.CompletedProcess:
        command = [sys.executable, "-c", _CODE, str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, check=True)

    return run


def test_a_second_process_reads_the_small_programs_too_and_is_silent(
    in_a_process, tmp_path
):
    in_a_process()
    kept = {path.name for path in tmp_path.iterdir() if path.name.endswith("-cache")}
    assert kept
    second = in_a_process()
    assert second.stderr == ""
    after = {path.name for path in tmp_path.iterdir() if path.name.endswith("-cache")}
    assert after == kept


_KILLED = """
import os, sys, jax, softcvi
from jax._src import lru_cache

def killed_while_it_writes(path, data):
    with open(path, "wb") as file:
        file.write(data[: len(data) // 2])
    os._exit(9)

softcvi.enable_compilation_cache(sys.argv[1])
type(lru_cache.pathlib.Path(".")).write_bytes = killed_while_it_writes
jax.jit(lambda x: x.at[0].add(1.0))(jax.numpy.arange(4.0)).block_until_ready()
"""


def test_a_killed_process_leaves_no_program_that_others_cannot_read(
    in_a_process, tmp_path
):
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)])
    assert killed.returncode == 9
    assert list(tmp_path.iterdir())  # it was writing
    for _ in range(2):
        assert in_a_process().stderr == ""


_FIT = """
import sys, jax, jax.numpy as jnp, softcvi
target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
if "off" in sys.argv: softcvi.enable_compilation_cache(None)
guide = softcvi.guides.mean_field(target)
softcvi.fit(jax.random.key(0), target, guide, steps=5, start=None, progress=False)
"""


@pytest.mark.parametrize(
    ("arguments", "environment", "is_kept"),
    [
        ((), {}, True),
        ((), {"SOFTCVI_CACHE": "0"}, False),
        (("off",), {}, False),
    ],
)
def test_the_first_fit_turns_the_cache_on_unless_told_otherwise(
    tmp_path, arguments, environment, is_kept
):
    unset = {"JAX_COMPILATION_CACHE_DIR", "SOFTCVI_CACHE"}
    given = {k: v for k, v in os.environ.items() if k not in unset}
    given |= {"SOFTCVI_CACHE_DIR": str(tmp_path), **environment}
    command = [sys.executable, "-c", _FIT, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, env=given)
    assert run.returncode == 0, run.stderr
    assert bool(list(tmp_path.rglob("*-cache"))) == is_kept


_SETTINGS = """
import gc, os, signal, jax, jax.numpy as jnp, softcvi
import threadpoolctl  # sets a variable of its own when it is imported

def settings():
    process = {"garbage": gc.get_threshold(), "Ctrl-C": signal.getsignal(signal.SIGINT)}
    return {**process, **os.environ, **jax.config.values}

target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
program = jax.jit(lambda x: x + 1)
program(1.0)
before = settings()
result = softcvi.fit(jax.random.key(0), target, steps=20, progress=False)
result.sample(jax.random.key(1), 10)
after = settings()
assert program._cache_size() == 1
print(*sorted(n for n in {*before, *after} if before.get(n) != after.get(n)))
"""
_CACHE = {
    "jax_compilation_cache_dir",
    "jax_logging_level",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
    "TF_CPP_MIN_LOG_LEVEL",
}


@pytest.mark.parametrize("switch", ["0", "1"])
def test_a_fit_changes_no_setting_but_those_of_the_cache(tmp_path, switch):
    unset = {"JAX_COMPILATION_CACHE_DIR", "TF_CPP_MIN_LOG_LEVEL"}
    given = {k: v for k, v in os.environ.items() if k not in unset}
    given |= {"SOFTCVI_CACHE_DIR": str(tmp_path), "SOFTCVI_CACHE": switch}
    command = [sys.executable, "-c", _SETTINGS]
    run = subprocess.run(command, capture_output=True, text=True, env=given)
    assert run.returncode == 0, run.stderr
    assert set(run.stdout.split()) == (_CACHE if switch == "1" else set())


def test_the_oldest_programs_go_first(tmp_path):
    for age in range(5):
        path = tmp_path / "machine" / f"{age}-cache"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
        os.utime(path, (1000.0 - age, 1000.0 - age))
    remove_oldest(tmp_path, 250)
    kept = {path.name for path in tmp_path.rglob("*-cache")}
    assert kept == {"0-cache", "1-cache"}


_HOMELESS = """
import pathlib
import softcvi

def homeless():
    raise RuntimeError("Could not determine home directory.")

pathlib.Path.home = homeless
assert softcvi.enable_compilation_cache() is None
"""


def test_a_relative_cache_folder_is_ignored_and_no_home_means_no_cache(tmp_path):
    unwanted = ("SOFTCVI_", "JAX_COMPILATION")
    env = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
    paths = [str(Path.cwd()), env.get("PYTHONPATH", "")]
    env |= {"XDG_CACHE_HOME": "relative", "PYTHONPATH": os.pathsep.join(paths)}
    subprocess.run([sys.executable, "-c", _HOMELESS], check=True, env=env, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
