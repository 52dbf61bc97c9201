"""What the suite found, as Markdown."""

from collections.abc import Iterable, Sequence

from softcvi_experiments.store import Record
from softcvi_experiments.tables import markdown_table

_OUTCOMES = {
    "loaded": "read",
    "named": "refused, file and remedy named",
    "raw": "other errors",
    "memory": "above the memory limit",
    "time": "above the time limit",
    "executed": "code executed",
}
_PARTS = {
    "kills": "SIGKILL, then run again",
    "signals": "SIGTERM or SIGHUP, then run again",
    "disk": "full disk, then run again",
    "ctrl-c": "Ctrl-C, then run again",
    "clock": "clock set forward and back",
    "writers": "two processes, one folder",
}


def faults_page(records: Sequence[Record]) -> str:
    """The tables of a run of the suite.

    Args:
        records: The last record of each task.
    """
    parts = {
        "Faults met and survived": faults_table(records),
        "Damaged files": files_table(records),
        "Long runs": long_table(records),
    }
    body = [f"## {title}\n\n{table}\n" for title, table in parts.items() if table]
    return "\n".join(["# Faults on purpose", "", made(records), "", *body])


def made(records: Iterable[Record]) -> str:
    """When, and with which versions.

    Args:
        records: Records.
    """
    stamps = [record["made"] for record in records]
    if not stamps:
        return "No records."
    days = sorted({stamp["date"][:10] for stamp in stamps})
    facts = {
        "softcvi": "softcvi", "jax": "JAX", "commit": "commit", "cores": "cores",
    }  # fmt: skip
    words = [
        f"{title} {', '.join(sorted({str(stamp[name]) for stamp in stamps}))}"
        for name, title in facts.items()
    ]
    return f"Made on {' and '.join(days)} with {'; '.join(words)}."


def faults_table(records: Sequence[Record]) -> str:
    """Faults of running programs: how many, and what came of them.

    Args:
        records: The last record of each task.
    """
    rows = []
    for part, title in _PARTS.items():
        of_part = [r for r in records if r["part"] == part]
        for case in dict.fromkeys(r["case"] for r in of_part):
            chosen = [r for r in of_part if r["case"] == case]
            rows.append(
                [
                    title,
                    f"`{case}`" if " " not in case else case,
                    *(
                        str(sum(numbers))
                        for numbers in zip(*map(_counts, chosen), strict=True)
                    ),
                ]
            )
    head = (
        "fault", "program", "times", "held", "other answer", "doubled records",
        "files left behind",
    )  # fmt: skip
    return markdown_table(head, rows) if rows else ""


def _counts(record: Record) -> tuple[int, ...]:
    """Faults, and how many held, changed the answer, doubled records, left files."""
    if "times" in record:
        names = ("times", "held", "other", "doubled", "left")
        return tuple(int(record[name]) for name in names)
    is_equal, left = record.get("equal", record["ok"]), bool(record.get("left"))
    return 1, record["ok"], not is_equal, record.get("doubled", 0), left


def files_table(records: Sequence[Record]) -> str:
    """Damaged files by kind, and what reading them came to.

    Args:
        records: The last record of each task.
    """
    chosen = [r for r in records if r["part"] == "files" and "named" in r]
    if not chosen:
        return ""
    cases = list(dict.fromkeys(r["case"] for r in chosen))
    rows = [_counted(case, [r for r in chosen if r["case"] == case]) for case in cases]
    rows.append(_counted("all", chosen))
    return markdown_table(("file", "damaged", *_OUTCOMES.values()), rows, numbers=True)


def _counted(name: str, records: list[Record]) -> list[str]:
    counts = [sum(r[outcome] for r in records) for outcome in _OUTCOMES]
    return [name, *(f"{count:,}" for count in (sum(counts), *counts))]


def long_table(records: Sequence[Record]) -> str:
    """Memory over many steps, and a fit in many pieces.

    Args:
        records: The last record of each task.
    """
    found = {r["case"]: r for r in records if r["part"] == "long" and r["ok"]}
    rows = []
    if "steps" in found:
        r = found["steps"]
        grown = f"{r['grown_mib']:.1f} MiB more than after a fifth of them"
        rows.append(
            [f"{r['count']:,} steps", f"{r['mib']:.0f} MiB at the end, {grown}"]
        )
    if "resumes" in found:
        r = found["resumes"]
        said = "the same bits as" if r["equal"] else "NOT the same bits as"
        rows.append([f"one fit in {r['calls']} calls", f"{said} one call"])
    return markdown_table(("run", "outcome"), rows) if rows else ""
