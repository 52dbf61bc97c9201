"""Two processes that write to one folder at the same time."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from softcvi_experiments.children import environment
from softcvi_experiments.faults._runs import Run, contents

_EACH = 50
_STORE = "records"
_ADD = """
import sys
from softcvi.sweeps import RecordStore
folder, who = sys.argv[1:]
records = RecordStore(folder)
print("ready", flush=True)
sys.stdin.readline()
for i in range(%d):
    records.add([{"id": f"{who}-{i}", "shared": "x" * 500}])
    records.add([{"id": f"both-{i}"}])
"""


def two_writers(task: dict[str, Any]) -> dict[str, Any]:
    """Two processes at once; both keep what they wrote, or one is told of the other.

    Args:
        task: ``case``, a program or ``"records"``, and ``folder`` for everything.
    """
    out = Path(task["folder"]) / f"{task['case'].replace(' ', '-')}-writers"
    if task["case"] == _STORE:
        return {**task, **_two_stores(out)}
    return {**task, **_two_programs(task["case"], out, Path(task["folder"]))}


def _two_stores(out: Path) -> dict[str, Any]:
    out.mkdir(parents=True, exist_ok=True)
    children = [
        subprocess.Popen(
            [sys.executable, "-c", _ADD % _EACH, str(out), who],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(threads=1),
        )
        for who in ("first", "second")
    ]
    for child in children:
        assert child.stdout is not None
        child.stdout.readline()
    for child in children:
        child.communicate("go\n", timeout=300)
    lines = (out / "records.jsonl").read_text().splitlines()
    names = [json.loads(line)["id"] for line in lines]
    own = [name for name in names if not name.startswith("both")]
    shared = [name for name in names if name.startswith("both")]
    # An identifier is written once, whoever is the first.
    is_right = len(set(own)) == len(own) == 2 * _EACH and len(shared) == _EACH
    return {"ok": is_right, "kept": len(names), "expected": 3 * _EACH}


def _two_programs(name: str, out: Path, folder: Path) -> dict[str, Any]:
    from softcvi_experiments.faults._programs import PROGRAMS

    told = json.dumps({"program": name, "out": str(out), "fault": {"kind": "none"}})
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "softcvi_experiments.faults._victim", told],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(threads=1, cache=folder / "cache"),
        )
        for _ in range(2)
    ]
    runs = []
    for child in children:
        _, errors = child.communicate(timeout=600)
        runs.append(Run(child.returncode, {}, errors))
    alone = json.loads((folder / f"{name}.json").read_text())
    is_equal = PROGRAMS[name].answer(out) == alone["answer"]
    left = sorted(set(contents(out)) - set(alone["files"]))
    refused = [run for run in runs if run.code != 0]
    is_told = all("in use by process" in run.errors for run in refused)
    return {
        "ok": is_equal and not left and is_told and len(refused) < 2,
        "equal": is_equal,
        "left": left,
        "refused": len(refused),
        "errors": " ".join(run.errors[-300:] for run in refused),
    }
