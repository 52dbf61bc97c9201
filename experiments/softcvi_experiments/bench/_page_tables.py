"""Tables of speed for the README and the docs, from the records of the benchmarks."""

import json
import re
from pathlib import Path

from softcvi_experiments.tables import markdown_table
from softcvi_experiments.tasks import PAPER_TASKS, get_task


def speed_tables(folder: Path) -> dict[str, str]:
    """Steps, peers and cold starts by the names of their markers.

    Args:
        folder: Where the records of all machines are.
    """
    return {
        "steps": _steps(folder),
        "peers": _peers(folder),
        "cold": (folder / "cold" / "cold.md").read_text(encoding="utf-8").strip(),
    }


def _steps(folder: Path) -> str:
    one, newer = (
        {row["task"]: row for row in _parts(folder, f"{machine}/figure.json")["one"]}
        for machine in ("two-cores", "two-cores-jax-0.12")
    )
    many = {
        row["task"]: row
        for row in _parts(folder, "h200/figure.json")["many"]["rows"]
        if row["method"] == "softcvi-0.75"
    }
    papers_code = json.loads((folder / "paper-code.json").read_text())["us_a_step"]
    header = [
        "task", "the paper's code, two cores", "one fit, two cores",
        "one fit, two cores, JAX 0.12", "50 fits at once, one H200",
    ]  # fmt: skip
    rows = [
        [get_task(task).title, str(papers_code[task])]
        + [f"{found[task]['us_a_step']:.0f}" for found in (one, newer, many)]
        for task in PAPER_TASKS
    ]
    return markdown_table(header, rows, numbers=True)


def _peers(folder: Path) -> str:
    steps = _parts(folder, "two-cores/peers.json")["steps"]
    every = dict.fromkeys(row["label"] for task in steps for row in task["rows"])
    # The page shows what users would run; the record has all.
    labels = [name for name in every if not re.search("bare|RenyiELBO", name)]
    rows = []
    for label in labels:
        found: list[dict] = [
            next((row for row in task["rows"] if row["label"] == label), {})
            for task in steps
        ]
        ratios = [f"{row['ratio']:.2g}" if "ratio" in row else "" for row in found]
        rows.append([label, *ratios])
    header = ["time per step", *(task["title"] for task in steps)]
    return markdown_table(header, rows, numbers=True)


def _parts(folder: Path, name: str) -> dict:
    return json.loads((folder / name).read_text(encoding="utf-8"))["parts"]
