"""The library alone: built, installed elsewhere, imported, fitted and shown."""

import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

HELP = """\
import sys
from softcvi.cli import main

main(["--help"])
main(["fit", "--help"])
main(["report", "--help"])
heavy = {"jax", "numpy", "matplotlib", "jinja2"} & set(sys.modules)
sys.exit(f"loaded: {heavy}" if heavy else 0)
"""
FIT = """\
import jax
import jax.numpy as jnp
import softcvi

assert softcvi.__file__.startswith({where!r}), softcvi.__file__
target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
result = softcvi.fit(jax.random.key(0), target, steps=50, progress=False)
print(result.verdict.level)
try:
    import softcvi_experiments
except ImportError:
    print("no experiments")
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_help_loads_neither_jax_nor_numpy(tmp_path):
    """Other distributions may load what they like; ours must not."""
    (tmp_path / "softcvi").symlink_to(ROOT / "softcvi")
    metadata = tmp_path / "softcvi-0.1.0.dist-info"
    metadata.mkdir()
    text = "Metadata-Version: 2.1\nName: softcvi\nVersion: 0.1.0\n"
    (metadata / "METADATA").write_text(text)
    # Shadows the commands of the experiments, if they are installed.
    none = tmp_path / "softcvi_experiments-0.1.0.dist-info"
    none.mkdir()
    (none / "METADATA").write_text(text.replace("softcvi", "softcvi-experiments"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run(sys.executable, "-c", HELP, cwd=tmp_path, env=environment)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A fresh environment with the wheel; dependencies are those of the tests."""
    folder = tmp_path_factory.mktemp("wheel")
    isolation = (
        ["--no-build-isolation"] if importlib.util.find_spec("hatchling") else []
    )
    pip = (sys.executable, "-m", "pip")
    run(*pip, "wheel", "-q", "--no-deps", *isolation, "-w", str(folder), str(ROOT))
    (wheel,) = folder.glob("softcvi-*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", str(folder / "env"))
    python = folder / "env" / "bin" / "python"
    run(*pip, "-q", "--python", str(python), "install", "--no-deps", str(wheel))
    return folder


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="folders of POSIX environments")
def test_the_wheel_alone_imports_fits_and_shows_a_demo(installed):
    binaries = installed / "env" / "bin"
    # Editable installs are not importable from here, so the experiments are absent.
    environment = {**os.environ, "PYTHONPATH": sysconfig.get_paths()["purelib"]}
    options = {"cwd": installed, "env": environment}
    where = str(installed / "env")
    printed = run(binaries / "python", "-c", FIT.format(where=where), **options)
    assert printed.split("\n")[:2] == ["trusted", "no experiments"]
    listed = run(binaries / "softcvi", "--help", **options)
    assert all(command in listed for command in ("demo", "fit", "report"))
    run(binaries / "softcvi", "demo", "--steps", "20", "--quiet", **options)
    page = (installed / "softcvi-demo" / "demo.html").read_text(encoding="utf-8")
    assert "SLCP" in page
    assert "exactly 25%" in page
