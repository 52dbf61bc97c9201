"""The page of the study: what was reached, beside the bounds."""

from collections import defaultdict

import numpy as np

from softcvi_experiments.large._cases import CASES
from softcvi_experiments.store import Record
from softcvi_experiments.tables import markdown_table

# An ELBO beyond this is that of a guide which has not found the posterior.
_FAR = 1e7
_METHODS = {
    "fit": "`fit`",
    "elbo": "ELBO, same guide and time",
    "fit_until": "`fit_until`",
    "nuts": "NUTS",
}
_HEAD = (
    "method", "worst mean, sd", "99 %, sd", "sds, times", "close", "log evidence off",
    "ELBO", "verdict", "seconds",
)  # fmt: skip


def meets(score: Record) -> bool:
    """Whether an answer keeps its bounds and is trusted.

    Args:
        score: Of one run.

    Example:
        >>> bounds = {"share": 1.0, "log_evidence": None}
        >>> meets({"bounds": bounds, "share_close": 1.0, "trusted": True})
        True
    """
    bounds = score["bounds"]
    if score.get("share_close") is None or not score.get("trusted"):
        return False
    limit, error = bounds["log_evidence"], evidence_error(score)
    is_near = limit is None or (error is not None and abs(error) <= limit)
    return score["share_close"] >= bounds["share"] and is_near


def evidence_error(score: Record) -> float | None:
    """Log evidence minus the right one; None where one of them is not known."""
    found, right = score.get("log_evidence"), score.get("right_log_evidence")
    return None if found is None or right is None else found - right


def describe(run: Record) -> str:
    """A run in one line.

    Example:
        >>> describe({"case": "walk-150", "method": "fit", "key": 0, "status": "ok",
        ...           "level": "trusted", "seconds": 2.0})
        'walk-150 fit 0: trusted, 2.0 s'
    """
    head = "{case} {method} {key}".format(**run)
    if run["status"] != "ok":
        return f"{head}: {run['status']}, {run['message'].splitlines()[0]}"
    return f"{head}: {run.get('level', 'done')}, {run['seconds']:.1f} s"


def study_page(scores: list[Record]) -> str:
    """The tables of a study.

    Args:
        scores: One for each run.
    """
    parts: list[str] = []
    by_case: dict[str, list[Record]] = defaultdict(list)
    for score in scores:
        by_case[score["case"]].append(score)
    for case in sorted(by_case, key=list(CASES).index):
        of_case = by_case[case]
        shown = [s for s in of_case if s["method"] != "reference"]
        rows = [_row(score) for score in sorted(shown, key=_order)]
        if not rows:
            continue
        parts += [
            f"#### {case}",
            "",
            _about(of_case),
            "",
            markdown_table(_HEAD, rows),
            "",
        ]
    return "\n".join(parts).rstrip() + "\n"


def _about(scores: list[Record]) -> str:
    known = [s for s in scores if s["status"] == "ok"]
    if not known:
        return "No run has ended."
    bounds, size = known[0]["bounds"], known[0]["parameters"]
    words = (
        f"{size} parameters. Asked for: means within {bounds['mean']:g} sd and sds "
        f"within {100 * bounds['sd']:g} %"
    )
    if bounds["share"] < 1:
        words += f" for {100 * bounds['share']:g} % of the parameters"
    if bounds["log_evidence"] is not None:
        words += f", log evidence within {bounds['log_evidence']:g}"
    errors = [s["monte_carlo_error"] for s in known if "monte_carlo_error" in s]
    words += f". Answer: {known[0]['answer']}"
    if errors:
        words += f"; errors of means from draws alone reach {min(errors):.2f} sd"
    return words + "."


def _order(score: Record) -> tuple:
    names = list(_METHODS)
    method = score["method"]
    place = names.index(method) if method in names else len(names)
    return place, method, score["key"]


def _row(score: Record) -> list[str]:
    name = _METHODS.get(score["method"], score["method"])
    if score["status"] != "ok":
        return [name, *["-"] * 6, score["status"], "-"]
    mark = "**" if meets(score) else ""
    error, elbo = evidence_error(score), score.get("elbo")
    cells = ["-"] * 4
    if score.get("mean_error") is not None and np.isfinite(score["mean_error"]):
        cells = [
            f"{score['mean_error']:.2f}",
            f"{score['mean_error_99']:.2f}",
            f"{score['sd_low']:.2f} to {score['sd_high']:.2f}",
            f"{100 * score['share_close']:.1f} %",
        ]
    return [
        f"{mark}{name}{mark}",
        *cells,
        "-" if error is None else f"{error:+.2f}",
        "-" if elbo is None or not abs(elbo) < _FAR else f"{elbo:.2f}",
        score.get("level") or "-",
        f"{score['seconds']:.0f}",
    ]
