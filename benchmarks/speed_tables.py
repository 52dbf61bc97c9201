"""Write the tables of the README and of the docs from the records in results.

Run it after new records: ``python benchmarks/speed_tables.py``.
"""

import functools
import json
import re
from pathlib import Path

from softcvi_experiments import (
    batches,
    faults,
    look,
    neighbours,
    rows,
    scaling,
    throughput,
)
from softcvi_experiments.bench import speed_tables
from softcvi_experiments.study import answered
from softcvi_experiments.tables import markdown_table
from softcvi_experiments.tasks import PAPER_TASKS, get_task
from softcvi_experiments.verdict import clopper_pearson

from softcvi.sweeps import RecordStore

_ROOT = Path(__file__).resolve().parents[1]
_RESULTS = _ROOT / "results"
# Tables of each page, by the names of their markers.
PAGES = {
    "README.md": ("quality", "steps"),
    "results/README.md": ("quality-and-likelihood",),
    "docs/speed.md": ("peers", "cold"),
    "docs/zoo.md": ("untouched", "zoo", "zoo-cold"),
    "docs/verdict.md": (
        "verdict",
        "verdict-second",
        "verdict-sums",
        "verdict-third",
        "verdict-fourth",
        "verdict-fifth",
        "verdict-seventh",
        "verdict-sixth",
        "verdict-roundings",
        "modes",
        "look",
    ),
    "docs/beyond-the-paper.md": (
        "quality",
        "verdict",
        "verdict-sums",
        "untouched",
        "blocks",
    ),
    "docs/choosing-evidence.md": (
        "alpha",
        "divergences",
        "temperature",
        "smoothing",
        "proposals",
    ),
    "docs/many-rows.md": ("rows", "batches", "throughput"),
    "docs/scaling.md": (
        "scaling-growth",
        "scaling-costs",
        "scaling-bytes",
        "scaling-exchange",
        "scaling-devices",
        "scaling-limits",
    ),
    "docs/neighbours.md": ("neighbours",),
    "docs/reliability.md": ("faults", "damaged-files", "long-runs"),
}
# Held-out families of the second run whose program is the log of a sum.
_SUMS = {
    "islands",
    "nested",
    "string",
    "minor-mode",
    "two-spikes",
    "student-islands",
    "logistic-islands",
    "two-bananas",
}
# Families of the sixth set that were looked at when roundings were told from places.
_ROUNDINGS = {
    "bloch",
    "check-ups",
    "clumps",
    "pollen",
    "response-times",
    "tills",
    "voters",
}
# Studies that make their own table from the records of their name.
_OWN_TABLES = {
    "look": look,
    "rows": rows,
    "batches": batches,
    "throughput": throughput,
    "neighbours": neighbours,
}
_STUDIES = ("alpha", "divergences", "temperature", "smoothing", "proposals")
# Models of the zoo's report half that were looked at while choosing defaults.
_LOOKED_AT = {
    "banana", "eight_schools_noncentred", "four_modes", "horseshoe",
    "pharmacokinetics", "robust_regression", "varying_slopes",
}  # fmt: skip
_METHODS = {
    "fit": "softcvi `fit`",
    "fit_until": "softcvi `fit_until`",
    "auto_normal": "NumPyro AutoNormal",
    "auto_mvn": "NumPyro AutoMultivariateNormal",
    "pathfinder": "BlackJAX multi-path pathfinder",
    "nuts": "NumPyro NUTS 4 x (1000 + 1000)",
}

_SCORES = {
    task: "gap to optimum" if task == "linear_regression" else "log probability"
    for task in PAPER_TASKS
}


@functools.cache
def tables() -> dict[str, str]:
    """All tables by the names of their markers."""
    return {
        "quality": _quality(), "quality-and-likelihood": _quality(likelihood=True),
        **speed_tables(_RESULTS / "bench"),
        "untouched": _untouched(),
        "zoo": _first_table(_RESULTS / "zoo" / "zoo.md"),
        "zoo-cold": _first_table(_RESULTS / "zoo" / "two-cores" / "zoo.md"),
        "verdict": _verdict("verdict"),
        "verdict-second": _verdict("verdict-second"),
        "verdict-third": _verdict("verdict-third"),
        "verdict-fourth": _verdict("verdict-fourth"),
        "verdict-fifth": _verdict("verdict-fifth"),
        "modes": _first_table(_RESULTS / "modes" / "modes.md"),
        "verdict-sixth": _verdict("verdict-sixth"),
        "verdict-seventh": _verdict("verdict-seventh"),
        "verdict-sums": _verdict_apart(
            "verdict-second", _SUMS, ("logs of sums", "all others")
        ),
        "verdict-roundings": _verdict_apart(
            "verdict-sixth", _ROUNDINGS, ("looked at", "all others")
        ),
        "blocks": _blocks(),
        **{study: _study(study) for study in _STUDIES},
        **{
            name: module.table(
                RecordStore(_RESULTS / name).latest(*module.Study.identity)
            )
            for name, module in _OWN_TABLES.items()
        },
        **scaling.tables(
            answered(RecordStore(_RESULTS / "scaling").latest(*scaling.Study.identity))
        ),
        **_faults(),
    }  # fmt: skip


def with_tables(text: str, names: tuple[str, ...]) -> str:
    """A page with the tables of today's records between its markers."""
    made = tables()
    for name in names:
        table = made[name]
        marks = f"<!-- {name}: benchmarks/speed_tables.py -->", f"<!-- end {name} -->"
        pattern = rf"(?<={re.escape(marks[0])}\n).*?(?={re.escape(marks[1])})"
        text, count = re.subn(pattern, f"\n{table}\n\n", text, flags=re.DOTALL)
        if count != 1:
            raise ValueError(f"the page has no place for the table {name!r}")
    return text


def _quality(*, likelihood: bool = False) -> str:
    """Medians of SoftCVI by recipe, perhaps beside those of maximum likelihood fits."""
    columns = {
        "the paper's recipe here": "metrics-paper",
        "default, 10,000 steps": "metrics-default-10000",
        "default, 50,000 steps": "metrics-default-50000",
    }
    found = {title: _medians(folder) for title, folder in columns.items()}
    first, *_ = found.values()
    header = ["task", "published, 50,000 steps", *columns]
    header += ["maximum likelihood fit"] if likelihood else []
    rows = []
    for task, metric in _SCORES.items():
        gap = " (gap)" if metric == "gap to optimum" else ""
        published, _, fitted = first[task, metric]
        ours = [medians[task, metric][1] for medians in found.values()]
        row = [get_task(task).title + gap, published, *ours, fitted]
        rows.append(row[: len(header)])
    return markdown_table(header, rows, numbers=True)


def _medians(folder: str) -> dict[tuple[str, str], tuple[str, str, str]]:
    """Medians of SoftCVI with alpha 0.75: published, own, maximum likelihood."""
    text = (_RESULTS / folder / "table.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in text.split("\n")
    ]
    return {
        (row[0], row[2]): tuple(cell.split(" ")[0] for cell in row[3:6])
        for row in rows
        if len(row) > 5 and row[1] == "softcvi-0.75"
    }


def _untouched() -> str:
    text = (_RESULTS / "zoo" / "records.jsonl").read_text(encoding="utf-8")
    records = [json.loads(line) for line in text.splitlines()]
    rows = []
    for method, title in _METHODS.items():
        found = [
            record
            for record in records
            if record["method"] == method
            and record["split"] == "report"
            and record["model"] not in _LOOKED_AT
        ]
        good = sum(record["good"] is True for record in found)
        seeds = {record["seed"] for record in found}
        rows.append([title, f"{good} of {len(found)}", str(len(seeds))])
    return markdown_table(["method", "good", "seeds"], rows, numbers=True)


def _verdict(folder: str) -> str:
    """The first table of the study's page: error rates over all held-out families."""
    return _first_table(_RESULTS / folder / "verdict.md")


def _first_table(page: Path) -> str:
    lines = page.read_text(encoding="utf-8").split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    last = next(i for i in range(first, len(lines)) if not lines[i])
    return "\n".join(lines[first:last])


def _verdict_apart(folder: str, apart: set[str], titles: tuple[str, str]) -> str:
    """Wrong among trusted of a held-out run, apart for some families and all others."""
    records = RecordStore(_RESULTS / folder).all()
    methods = dict.fromkeys(record["method"] for record in records)
    rows = []
    for title, is_apart in zip(titles, (True, False), strict=True):
        for method in methods:
            found = [
                record
                for record in records
                if record["method"] == method
                and (record["family"] in apart) == is_apart
            ]
            answers = [r for r in found if r["status"] == "ok"]
            trusted = [r for r in answers if r["trusted"]]
            right = str(sum(record["right"] for record in answers))
            wrong = sum(not record["right"] for record in trusted)
            low, high = clopper_pearson(wrong, len(trusted))
            share = f"{wrong} of {len(trusted)} ({low:.1%} to {high:.1%})"
            families = str(len({record["family"] for record in found}))
            rows.append([title, families, f"`{method}`", str(len(found)), right, share])
    header = ["families", "number", "method", "runs", "right", "wrong among trusted"]
    return markdown_table(header, rows)


def _blocks() -> str:
    """Guides of one mixture per scalar on the many-well, by how they are labelled."""
    store = RecordStore(_RESULTS / "large")
    names = ("whole particles", "blocks of 4", "blocks of 8", "adaptive blocks", "ELBO")
    rows = []
    for case in ("many-well-32", "many-well-320"):
        found = {
            record["method"]: record
            for record in store.find({"case": case, "kind": "score", "small": False})
        }
        for name in names:
            score = found[name]
            error = score["log_evidence"] - score["right_log_evidence"]
            cells = [f"{score['mean_error']:.2f}", f"{error:+.2f}", score["level"]]
            rows.append([str(score["parameters"]), name, *cells])
    header = ["parameters", "labels", "worst mean, sd", "log evidence off", "verdict"]
    return markdown_table(header, rows)


def _study(name: str) -> str:
    """Median log probability of reference draws, by variant and task."""
    text = (_RESULTS / "appendix" / "studies" / f"study_{name}.md").read_text()
    found: dict[str, dict[str, str]] = {}
    for line in text.splitlines()[2:]:
        task, variant, score = (cell.strip() for cell in line.split("|")[1:4])
        found.setdefault(variant, {})[task] = score.split(" ")[0]
    best = {
        task: max(float(row[task]) for row in found.values()) for task in PAPER_TASKS
    }
    rows = [
        [
            variant,
            *(
                f"**{row[task]}**" if float(row[task]) == best[task] else row[task]
                for task in PAPER_TASKS
            ),
        ]
        for variant, row in found.items()
    ]
    return markdown_table([name, *(get_task(task).title for task in PAPER_TASKS)], rows)


def _faults() -> dict[str, str]:
    records = RecordStore(_RESULTS / "faults").latest(*faults.IDENTITY)
    return {
        "faults": f"{faults.made(records)}\n\n{faults.faults_table(records)}",
        "damaged-files": faults.files_table(records),
        "long-runs": faults.long_table(records),
    }


if __name__ == "__main__":
    for name, of_page in PAGES.items():
        page = _ROOT / name
        text = with_tables(page.read_text(encoding="utf-8"), of_page)
        page.write_text(text, encoding="utf-8")
