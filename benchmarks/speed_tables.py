"""Write the speed tables of the README from the records in results/bench.

Run it after new records: ``python benchmarks/speed_tables.py``.
"""

import json
import re
from pathlib import Path

from softcvi_experiments.tables import markdown_table
from softcvi_experiments.tasks import PAPER_TASKS, get_task

_ROOT = Path(__file__).resolve().parents[1]
_RECORDS = _ROOT / "results" / "bench"


def tables() -> dict[str, str]:
    """The README's tables by the name of their markers."""
    return {"steps": _steps(), "peers": _peers()}


def with_tables(text: str) -> str:
    """A page with the tables of today's records between its markers."""
    for name, table in tables().items():
        marks = f"<!-- {name}: benchmarks/speed_tables.py -->", f"<!-- end {name} -->"
        pattern = rf"(?<={re.escape(marks[0])}\n).*?(?={re.escape(marks[1])})"
        text, count = re.subn(pattern, f"\n{table}\n\n", text, flags=re.DOTALL)
        if count != 1:
            raise ValueError(f"the page has no place for the table {name!r}")
    return text


def _steps() -> str:
    one, newer = (
        {row["task"]: row for row in _parts(f"{folder}/figure.json")["one"]}
        for folder in ("two-cores", "two-cores-jax-0.12")
    )
    many = {
        row["task"]: row
        for row in _parts("h200/figure.json")["many"]["rows"]
        if row["method"] == "softcvi-0.75"
    }
    papers_code = json.loads((_RECORDS / "paper-code.json").read_text())["us_a_step"]
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


def _peers() -> str:
    steps = _parts("two-cores/peers.json")["steps"]
    labels = dict.fromkeys(row["label"] for task in steps for row in task["rows"])
    # The page shows what users would run; the record has all.
    labels = [name for name in labels if not re.search("bare|RenyiELBO", name)]
    rows = []
    for label in labels:
        found = [
            next((row for row in task["rows"] if row["label"] == label), {})
            for task in steps
        ]
        ratios = [f"{row['ratio']:.2g}" if "ratio" in row else "" for row in found]
        rows.append([label, *ratios])
    header = ["time of a step", *(task["title"] for task in steps)]
    return markdown_table(header, rows, numbers=True)


def _parts(name: str) -> dict:
    return json.loads((_RECORDS / name).read_text(encoding="utf-8"))["parts"]


if __name__ == "__main__":
    page = _ROOT / "README.md"
    page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
