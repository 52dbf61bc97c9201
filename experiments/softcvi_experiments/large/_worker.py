"""The worker of the study: runs one method on one posterior at a time."""

from typing import Any

import jax

from softcvi.sweeps import RecordStore
from softcvi_experiments.large._cases import get_case
from softcvi_experiments.large._methods import METHODS, Setting, warm
from softcvi_experiments.store import DrawStore

_FITS: dict[tuple, float] = {}


def run_case(**task: Any) -> dict[str, Any]:
    """Run a method and keep its moments.

    Args:
        **task: ``case``, ``method``, ``key``, ``small`` and the folder ``out``.

    Example:
        >>> task = {"case": "walk-150", "method": "fit", "key": 0, "small": True}
        >>> run_case(**task, out=".")["runs"][0]["method"]  # doctest: +SKIP
        'fit'
    """
    identity = {name: task[name] for name in ("case", "key", "small")}
    posterior = get_case(task["case"], small=task["small"])
    # Chains and draws of a key; methods that differ begin from the same one.
    key = jax.random.key(task["key"])
    warm(key)
    setting = Setting(task["small"], _seconds_of_fit(task))
    runs = METHODS[task["method"]](key, posterior, setting)
    store = DrawStore(task["out"])
    records = []
    for run in runs:
        named = {**identity, "method": run.name}
        if run.moments is not None:
            store.put(named, run.moments.arrays())
        size = posterior.target.structure.size
        records.append({**named, "status": "ok", "parameters": size, **run.facts})
    if task["method"] == "fit":
        _FITS[_fit_of(task)] = records[0]["seconds"]
    return {"runs": records}


def _fit_of(task: dict[str, Any]) -> tuple:
    return task["case"], task["key"], task["small"]


def _seconds_of_fit(task: dict[str, Any]) -> float:
    """What ``fit`` took in this process, or by the records of the folder."""
    if _fit_of(task) in _FITS:
        return _FITS[_fit_of(task)]
    wanted = {name: task[name] for name in ("case", "key", "small")}
    known = RecordStore(task["out"]).find(wanted | {"method": "fit", "status": "ok"})
    return known[-1]["seconds"] if known else 0.0
