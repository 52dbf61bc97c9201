"""Measures the code itself: files that a fit passes through, lines, import time.

    python benchmarks/house.py            # this checkout
    python benchmarks/house.py --json     # the same as one line of JSON

Run it in another checkout (with ``PYTHONPATH`` set to its root) to compare.
"""

import argparse
import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

ROOT = Path.cwd()


def files_passed(call) -> list[str]:
    """Files of the package in which some function ran during a call."""
    found = set()

    def note(frame, event, argument):
        if event == "call":
            found.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    package = ROOT / "softcvi"
    inside = {Path(name) for name in found}
    return sorted(
        str(path.relative_to(ROOT)) for path in inside if package in path.parents
    )


def lines_of(folder: Path, without: str | None = None) -> int:
    """Lines of all Python files below a folder."""
    files = [p for p in folder.rglob("*.py") if without not in p.parts]
    return sum(len(path.read_text().splitlines()) for path in files)


def measure() -> dict:
    """All figures of the checkout in the current folder."""
    import jax
    import jax.numpy as jnp

    import softcvi

    def log_prob(x):
        return -0.5 * jnp.sum(x["x"] ** 2) - 0.25 * x["x"][0] ** 4

    target = softcvi.DensityTarget(log_prob, {"x": jnp.zeros(3)})
    key = jax.random.key(0)
    # Modules that are loaded on demand would count as passed through.
    for info in pkgutil.walk_packages(softcvi.__path__, "softcvi."):
        if not info.name.startswith(("softcvi.adapters", "softcvi.__main__")):
            importlib.import_module(info.name)

    def one_fit():
        softcvi.fit(key, target, steps=200, progress=False).summary()

    def one_ladder():
        softcvi.fit_until(key, target, steps=200, progress=False).summary()

    old = ROOT / "softcvi" / "experiments"
    return {
        "files_fit": files_passed(one_fit),
        "files_fit_until": files_passed(one_ladder),
        "lines_library": lines_of(ROOT / "softcvi", without="experiments"),
        "lines_experiments": lines_of(old if old.exists() else ROOT / "experiments"),
        "import_ratio": import_ratio(),
    }


def import_ratio(repeats: int = 5) -> float:
    """Time of ``import softcvi`` over that of what it needs, medians of processes."""
    needs = "import jax, equinox, flowjax.distributions, optax"
    times: dict[str, list[float]] = {needs: [], "import softcvi": []}
    for _ in range(repeats):
        for code in times:
            timed = f"import time; t = time.perf_counter(); {code}\n"
            timed += "print(time.perf_counter() - t)"
            run = subprocess.run(
                [sys.executable, "-c", timed],
                capture_output=True,
                text=True,
                check=True,
            )
            times[code].append(float(run.stdout))
    theirs, ours = (sorted(values)[repeats // 2] for values in times.values())
    return ours / theirs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    as_json = parser.parse_args().json
    figures = measure()
    if as_json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        if isinstance(value, list):
            print(f"{name}: {len(value)}", *value, sep="\n  ")
        else:
            print(f"{name}: {value:g}")


if __name__ == "__main__":
    main()
