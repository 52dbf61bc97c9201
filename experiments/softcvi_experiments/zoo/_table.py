"""Summary and table of the zoo's bench, as Markdown."""

import math
from statistics import median

from softcvi_experiments.tables import markdown_table
from softcvi_experiments.zoo._case import METHODS
from softcvi_experiments.zoo._registry import names

LABELS = {
    "fit": "softcvi `fit`",
    "fit_until": "softcvi `fit_until`",
    "fit_starts": "softcvi `fit(starts=8)`",
    "auto_normal": "NumPyro AutoNormal",
    "auto_mvn": "NumPyro AutoMultivariateNormal",
    "pathfinder": "BlackJAX multi-path pathfinder",
    "nuts": "NumPyro NUTS 4 x (1000 + 1000)",
    "nuts_parallel": "the same, one device per chain",
}
NUTS = ("nuts", "nuts_parallel")
SUMMARY = (
    "method", "good", "good before correction", "answered by chains", "said trusted",
    "trusted but wrong", "errors", "median seconds", "faster than NUTS",
)  # fmt: skip
CASES = (
    "model", "half", "method", "mean error", "sd ratio", "mode weight error",
    "log prob of reference draws", "k-hat", "verdict", "seconds",
)  # fmt: skip
SILENT = 0.3


def silent_failures(records: list[dict]) -> list[dict]:
    """Cases whose verdict is trusted although a mean is off by more than 0.3 sd.

    Example:
        >>> silent_failures([{"status": "ok", "trusted": True, "mean_error": 0.1}])
        []
    """
    return [
        r
        for r in records
        if r["status"] == "ok" and r["trusted"] and not r["mean_error"] <= SILENT
    ]


def _share(count: int, total: int) -> str:
    return f"{count} of {total}" + (f" ({100 * count / total:.0f} %)" if total else "")


def _summary(records: list[dict]) -> str:
    seconds = {
        (r["model"], r["seed"]): r["seconds"]
        for r in records
        if r["method"] == "nuts" and r["status"] == "ok"
    }
    rows = []
    for method in METHODS:
        mine = [r for r in records if r["method"] == method]
        if not mine:
            continue
        ok = [r for r in mine if r["status"] == "ok"]
        judged = [r for r in ok if r["trusted"] is not None]
        # Later seeds of a process wait for no compilation: no time to compare.
        fresh = [r for r in ok if not r.get("compiled_before")]
        raced = [r for r in fresh if (r["model"], r["seed"]) in seconds]
        faster = sum(r["seconds"] < seconds[r["model"], r["seed"]] for r in raced)
        time = f"{median(r['seconds'] for r in fresh):.1f}" if fresh else "-"
        trusted = sum(bool(r["trusted"]) for r in judged)
        race = method not in NUTS and raced
        rows.append(
            [
                LABELS[method],
                _share(sum(r["good"] for r in ok), len(mine)),
                _before_correction(ok),
                _answered_by_chains(ok),
                _share(trusted, len(judged)) if judged else "no verdict",
                str(len(silent_failures(mine))) if judged else "-",
                str(len(mine) - len(ok)),
                time,
                _share(faster, len(raced)) if race else "-",
            ]
        )
    return markdown_table(SUMMARY, rows)


def _before_correction(records: list[dict]) -> str:
    """Good answers of the guide's own draws, where the scored ones were corrected."""
    raw = [r["uncorrected"] for r in records if r.get("uncorrected")]
    return _share(sum(r["good"] for r in raw), len(raw)) if raw else "-"


def _answered_by_chains(records: list[dict]) -> str:
    """How often the ladder's answer is from its last rung, which is NUTS."""
    known = [r["details"]["by_chains"] for r in records if "by_chains" in r["details"]]
    return _share(sum(known), len(known)) if known else "-"


def _number(value, digits: int = 2) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return f"{value:.{digits}f}" if abs(value) < 1e4 else f"{value:.1e}"


def _row(record: dict) -> list[str]:
    head = [record["model"], record["split"][:3], record["method"]]
    if record["status"] != "ok":
        message = record["message"].splitlines()[0][:60]
        return [*head, f"error: {message}", *[""] * 6]
    trusted = {True: "trusted", False: "not trusted", None: "-"}[record["trusted"]]
    wrong = " **wrong**" if silent_failures([record]) else ""
    mark = "**" if record["good"] else ""
    return [
        *head,
        f"{mark}{_number(record['mean_error'])}{mark}",
        f"{_number(record['sd_ratio_min'])} to {_number(record['sd_ratio_max'])}",
        _number(record["mode_error"]),
        _number(record["reference_log_prob"]),
        _number(record["khat"]),
        trusted + wrong,
        _number(record["seconds"], 1),
    ]


def _worst_seed(records: list[dict]) -> list[dict]:
    """For each model and method the seed with the largest error."""
    worst: dict[tuple[str, str], dict] = {}
    for record in records:
        key = record["model"], record["method"]
        badness = math.inf if record["status"] != "ok" else record["mean_error"]
        held = worst.get(key)
        held_badness = (
            -1.0
            if held is None
            else math.inf
            if held["status"] != "ok"
            else held["mean_error"]
        )
        if badness > held_badness:
            worst[key] = record
    # Only the first seed of a process waits for compilation: its time is everybody's.
    seconds = {
        (r["model"], r["method"]): r["seconds"]
        for r in records
        if r["status"] == "ok" and not r.get("compiled_before")
    }
    worst = {
        key: {**r, "seconds": seconds.get(key)} if r["status"] == "ok" else r
        for key, r in worst.items()
    }
    order = {name: i for i, name in enumerate(names())}
    rank = {name: i for i, name in enumerate(METHODS)}
    return sorted(worst.values(), key=lambda r: (order[r["model"]], rank[r["method"]]))


def zoo_page(records: list[dict]) -> str:
    """The bench as Markdown: a summary by method, then every model and method.

    Example:
        >>> "| method |" in zoo_page([])
        True
    """
    seeds = sorted({r["seed"] for r in records})
    lines = [
        "## At default settings",
        "",
        "Errors against long reference runs: the largest error of a posterior mean in "
        "posterior standard deviations, and the range of the ratio of standard "
        "deviations. *Good* means at most 0.15 sd and a ratio within 0.85 to 1.15; "
        f"*trusted but wrong* means an error above {SILENT} sd under a verdict that "
        "says trusted. Seconds include compilation. Sites without usable variance are "
        "scored as logarithm or asinh.",
        "",
        _summary(records),
    ]
    for split in ("development", "report"):
        part = [r for r in records if r.get("split") == split]
        if part:
            lines += ["", f"### {split.capitalize()} half", "", _summary(part)]
    lines += [
        "",
        "### Every case" + (f" (worst of seeds {seeds})" if len(seeds) > 1 else ""),
        "",
        markdown_table(CASES, [_row(r) for r in _worst_seed(records)]),
        "",
    ]
    return "\n".join(lines)
