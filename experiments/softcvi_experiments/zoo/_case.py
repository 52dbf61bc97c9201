"""One case of the zoo's bench: a model, a method, a seed."""

import importlib
import time
from dataclasses import asdict
from pathlib import Path

import jax
import numpy as np

from softcvi_experiments.children import error_record
from softcvi_experiments.zoo._model import ZooModel
from softcvi_experiments.zoo._outcome import Outcome
from softcvi_experiments.zoo._reference import Reference, load_reference
from softcvi_experiments.zoo._registry import get
from softcvi_experiments.zoo._score import Score, score

_FAR = 1e9
# Method name -> module and function; modules are imported in the case's process only.
METHODS = {
    "fit": ("_ours", "fit"),
    "fit_until": ("_ours", "fit_until"),
    "fit_starts": ("_ours", "fit_starts"),
    "auto_normal": ("_peers", "auto_normal"),
    "auto_mvn": ("_peers", "auto_multivariate_normal"),
    "pathfinder": ("_peers", "pathfinder"),
    "nuts": ("_peers", "nuts"),
    "nuts_parallel": ("_peers", "nuts_parallel"),
}


def blank_record(model_name: str, method: str, seed: int) -> dict:
    """What a record says of a case before it has been run.

    Example:
        >>> blank_record("banana", "fit", 0)["split"]
        'report'
    """
    model = get(model_name)
    return {
        "model": model_name,
        "kind": model.kind,
        "split": model.split,
        "method": method,
        "seed": seed,
    }


def _uncorrected(
    model: ZooModel, reference: Reference, outcome: Outcome
) -> dict | None:
    """The score of the approximation itself, where the draws were corrected."""
    if outcome.uncorrected is None:
        return None
    draws = {k: np.asarray(v) for k, v in outcome.uncorrected().items()}
    scored = score(model, reference, draws)
    return {**_numbers(scored), "good": scored.good}


def _numbers(scored: Score) -> dict:
    """A score as a record can hold it; draws that are not finite are far off."""
    return {
        name: _FAR if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in asdict(scored).items()
    }


def run_case(
    model_name: str, method: str, seed: int = 0, folder: Path | str | None = None
) -> dict:
    """Run one method on one model and score it; an error becomes a record.

    The clock runs from the model to the draws, compilation included, imports not.

    Args:
        model_name: Name of the zoo model.
        method: Name of the method, a key of ``METHODS``.
        seed: Seed of the run.
        folder: Where the references are; the packaged ones if None.

    Returns:
        A flat record that can be written as JSON.
    """
    model = get(model_name)
    record = blank_record(model_name, method, seed)
    try:
        reference = load_reference(model_name, folder)
        module, function = METHODS[method]
        run = getattr(
            importlib.import_module(f"softcvi_experiments.zoo.{module}"), function
        )
        start = time.perf_counter()
        outcome = run(model, seed)
        jax.block_until_ready(outcome.draws)
        seconds = time.perf_counter() - start
        draws = {k: np.asarray(v) for k, v in outcome.draws.items()}
        scored = score(model, reference, draws)
        log_prob = (
            float(np.mean(np.asarray(outcome.log_prob(dict(reference.draws)))))
            if outcome.log_prob
            else None
        )
        record |= {
            "status": "ok",
            **_numbers(scored),
            "good": scored.good,
            "uncorrected": _uncorrected(model, reference, outcome),
            "reference_log_prob": log_prob,
            "khat": outcome.khat() if outcome.khat else None,
            "trusted": outcome.trusted,
            "verdict": outcome.verdict,
            "seconds": round(seconds, 2),
            "details": dict(outcome.details),
        }
    except Exception as error:
        record |= error_record(error)
    return record


def answer(model: str, method: str, seed: int, first: bool) -> dict:
    """A task of the bench; later seeds find their programs compiled."""
    record = run_case(model, method, seed)
    return record | {"compiled_before": not first}
