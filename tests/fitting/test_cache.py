"""Programs kept on disk: the next process reads them, and nobody hears of it."""

import subprocess
import sys

import pytest

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
