"""Wall time of a cold process until its posterior can be trusted, against NUTS."""

from typing import Any

import jax
import numpy as np

from softcvi_experiments.bench._child import run_child
from softcvi_experiments.bench._options import Options
from softcvi_experiments.children import ChildError
from softcvi_experiments.nuts import trusted_by_checks
from softcvi_experiments.tasks import PAPER_TASKS

USABLE_KHAT = 0.7
OURS = {"default": "softcvi, default", "paper": "softcvi, the paper's guide"}
NUTS = {"vectorized": "NUTS, vectorised", "parallel": "NUTS, parallel"}


def measure_trusted(options: Options) -> list[dict[str, Any]]:
    """Time every way on every task; each in a fresh process without any cache.

    Ours is trusted when k-hat of the importance weights is below 0.7; NUTS (four
    chains of 1,000 draws after 1,000 of warm-up), and the chains at the end of our
    ladder, by the rule of ``softcvi.diagnostics`` for chains (R-hat, effective sample
    size, divergences). Both get the same NumPyro model; the paper's guides get the
    paper's densities.

    Args:
        options: Settings of the run.
    """
    names = PAPER_TASKS[:1] if options.quick else PAPER_TASKS
    # A cold process takes long and varies little: one for every five repeats.
    seeds = range(1 if options.quick else max(1, options.repeats // 5))
    rows = []
    for name in names:
        for way in ("paper",) if options.quick else OURS:
            rows.append(_row(options, name, OURS[way], seeds, "trusted", name, way))
        # Chains on separate devices need as many; an accelerator is one.
        parallel = jax.default_backend() == "cpu" and not options.quick
        for method in NUTS if parallel else ("vectorized",):
            row = _row(options, name, NUTS[method], seeds, "nuts", name, method)
            rows.append(row)
    return rows


def _row(options: Options, task: str, label: str, seeds, what: str, *args):
    reports = []
    for seed in seeds:
        try:
            reports.append(run_child(what, *args, seed, int(options.quick)))
        except ChildError as error:
            options.say(f"trusted, {task}, {label}: failed ({error})")
            return {"task": task, "label": label, "status": str(error)}
    trusted = [_is_trusted(r) for r in reports]
    row: dict[str, Any] = {
        "task": task,
        "label": label,
        "status": "ok",
        "seconds": float(np.median([r["seconds_wall"] for r in reports])),
        "all_seconds": [round(r["seconds_wall"], 3) for r in reports],
        "trusted": trusted,
        "checks": [r["checks"] for r in reports],
        "guide": reports[0].get("guide"),
    }
    share = f"{sum(trusted)} of {len(reports)} trusted"
    options.say(f"trusted, {task}, {label}: {row['seconds']:.1f} s, {share}")
    return row


def _is_trusted(report: dict[str, Any]) -> bool:
    checks = report["checks"]
    if "khat" in checks:
        return checks["khat"] < USABLE_KHAT
    return trusted_by_checks(checks)
