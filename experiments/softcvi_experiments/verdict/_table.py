"""Error rates of the verdicts, with exact confidence bounds, as Markdown."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from scipy import stats

from softcvi_experiments.store import Record
from softcvi_experiments.tables import markdown_table
from softcvi_experiments.verdict._methods import USABLE_KHAT

_NAMES = {
    "fit": "`fit`",
    "fit_until": "`fit_until`",
    "nuts": "NUTS, R-hat rule",
    "pathfinder": "pathfinder, k-hat",
}


def clopper_pearson(hits: int, total: int) -> tuple[float, float]:
    """Exact 95 % bounds of a share.

    Args:
        hits: Number of hits.
        total: Number of trials.

    Example:
        >>> [round(bound, 4) for bound in clopper_pearson(0, 600)]
        [0.0, 0.0061]
    """
    if total == 0:
        return 0.0, 1.0
    low = stats.beta.ppf(0.025, hits, total - hits + 1) if hits else 0.0
    high = stats.beta.ppf(0.975, hits + 1, total - hits) if hits < total else 1.0
    return float(low), float(high)


def _by_khat(record: Record) -> bool:
    khat = record.get("khat")
    return khat is not None and khat < USABLE_KHAT


def _as_told(record: Record) -> bool:
    return bool(record["trusted"])


def rates(records: Iterable[Record], trusts: Callable[[Record], bool]) -> dict:
    """Counts of a verdict: runs, and posteriors with a wrong trusted answer.

    Args:
        records: Records of one method.
        trusts: Whether the verdict trusts a record.

    Example:
        >>> one = {"family": "ring", "seed": 0, "status": "ok"}
        >>> rates([one | {"right": False, "trusted": True}], _as_told)["false_trust"]
        1
    """
    posteriors: dict[tuple, list[Record]] = defaultdict(list)
    total = answered = right = trusted = false_trust = right_trusted = 0
    for record in records:
        if record["status"] == "not applicable":
            continue
        total += 1
        if record["status"] != "ok":
            continue
        answered += 1
        said = trusts(record)
        right += record["right"]
        trusted += said
        right_trusted += said and record["right"]
        false_trust += said and not record["right"]
        if said:
            posteriors[record["family"], record["seed"]].append(record)
    wrong = sum(any(not r["right"] for r in runs) for runs in posteriors.values())
    return {
        "runs": total,
        "answered": answered,
        "right": right,
        "trusted": trusted,
        "false_trust": false_trust,
        "right_trusted": right_trusted,
        "posteriors_trusted": len(posteriors),
        "posteriors_wrong": wrong,
    }


def _share(hits: int, total: int) -> str:
    low, high = clopper_pearson(hits, total)
    rate = hits / total if total else float("nan")
    return f"{hits} of {total}: {rate:.1%} ({low:.1%} to {high:.1%})"


def _rows(records: list[Record]) -> list[list[str]]:
    rows = []
    for method, name in _NAMES.items():
        of_method = [r for r in records if r["method"] == method]
        verdicts = [(name, _as_told)]
        if method == "fit":
            verdicts.append((f"k-hat < {USABLE_KHAT} alone, of `fit`", _by_khat))
        for label, trusts in verdicts if of_method else ():
            found = rates(of_method, trusts)
            share = _share(found["false_trust"], found["trusted"])
            per_posterior = _share(
                found["posteriors_wrong"], found["posteriors_trusted"]
            )
            kept = _share(found["right_trusted"], found["right"])
            counts = [str(found[k]) for k in ("runs", "answered", "right", "trusted")]
            rows.append([label, *counts, share, per_posterior, kept])
    return rows


def study_page(records: list[Record]) -> str:
    """The tables of a study.

    Args:
        records: The last record of each case.
    """
    head = (
        "verdict", "runs", "answers", "right", "trusted", "wrong among trusted",
        "wrong, per posterior", "right answers trusted",
    )  # fmt: skip
    parts = ["# Error rates of the verdict", ""]
    for split in dict.fromkeys(r["split"] for r in records):
        of_split = [r for r in records if r["split"] == split]
        count = len({(r["family"], r["seed"]) for r in of_split})
        parts += [
            f"## {split}: {count} posteriors",
            "",
            "An answer is wrong if any mean is off by more than 0.3 posterior standard "
            "deviations, or any standard deviation by more than a third (medians and "
            "central 68 % intervals where the variance is infinite or too noisy). "
            "Exact (Clopper-Pearson) 95 % bounds.",
            "",
            markdown_table(head, _rows(of_split)),
            "",
            *_family_table(of_split),
            *_wrongly_trusted(of_split),
        ]
    return "\n".join(parts).rstrip() + "\n"


def _family_table(records: list[Record]) -> list[str]:
    methods = [m for m in _NAMES if any(r["method"] == m for r in records)]
    rows = []
    for family in sorted({r["family"] for r in records}):
        cells = [family]
        for method in methods:
            chosen = [
                r for r in records if (r["family"], r["method"]) == (family, method)
            ]
            found = rates(chosen, _as_told)
            seconds = sum(r.get("seconds") or 0.0 for r in chosen)
            cells.append(
                f"{found['right']}/{found['runs']} right, {found['right_trusted']} "
                f"trusted, {found['false_trust']} wrongly; "
                f"{seconds / max(1, found['answered']):.0f} s"
            )
        rows.append(cells)
    head = ("family", *(_NAMES[m] for m in methods))
    return ["### By family", "", markdown_table(head, rows), ""]


def _wrongly_trusted(records: list[Record]) -> list[str]:
    found = [
        r for r in records if r["status"] == "ok" and r["trusted"] and not r["right"]
    ]
    if not found:
        return []
    rows = [
        [
            r["family"],
            str(r["seed"]),
            str(r["key"]),
            _NAMES[r["method"]],
            f"{r['centre_error']:.2f}",
            f"{r['spread_ratio']:.2f}",
            r["site"],
        ]
        for r in found
    ]
    head = ("family", "seed", "key", "method", "sd off", "spread", "site")
    return ["### Wrong and trusted", "", markdown_table(head, rows), ""]
