"""All runs of one task and method in one compiled program, and their records."""

import time
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray

from softcvi.fitting import AbstractReporter, FitResult, fit_many, paper_optimizer
from softcvi.guides import AbstractGuide
from softcvi.objectives import AbstractObjective
from softcvi.sweeps import RecordStore
from softcvi_experiments._methods import get_objective
from softcvi_experiments._metrics import measure
from softcvi_experiments._settings import Settings
from softcvi_experiments.references import AbstractReferenceSource
from softcvi_experiments.tasks import AbstractTask, RunData, get_task, run_keys

Record = dict[str, Any]


@dataclass(frozen=True)
class Fits:
    """Fitted runs of one task and method.

    Args:
        data: Their data and references.
        guides: The fitted guides, every array with a leading axis of runs.
        results: What ``fit_many`` returned.
        keys: One fresh key a run.

    Example:
        >>> from softcvi_experiments import references
        >>> fits = fit_runs(
        ...     "linear_regression", "elbo", [0], Settings(steps=2),
        ...     references.BuiltinReferences(), progress=False,
        ... )
        >>> fits.results[0].status
        'finished'
    """

    data: RunData
    guides: AbstractGuide
    results: list[FitResult]
    keys: PRNGKeyArray


def fit_runs(
    task_name: str,
    method: str,
    runs: list[int],
    settings: Settings,
    source: AbstractReferenceSource,
    *,
    objective: AbstractObjective | None = None,
    progress: bool | AbstractReporter = True,
) -> Fits:
    """Fit a batch of runs.

    A run depends on the seed and its number alone, not on its batch; all methods see
    the same data and start values.

    Args:
        task_name: The task.
        method: The method.
        runs: The runs' numbers.
        settings: What to run them with.
        source: Where references come from.
        objective: An objective of your own; by default the one the method names.
        progress: Show a bar.

    Example:
        >>> from softcvi_experiments import references
        >>> fits = fit_runs(
        ...     "linear_regression", "elbo", [7], Settings(steps=2),
        ...     references.BuiltinReferences(), progress=False,
        ... )
        >>> len(fits.results)
        1
    """
    task = get_task(task_name)
    if objective is None:
        objective = get_objective(method, settings.num_particles, settings.negative)
    data_key, guide_key, fit_key, metric_key = jr.split(jr.key(settings.seed), 4)
    data = task.data(data_key, runs, source)
    guides = eqx.filter_vmap(task.guide)(run_keys(guide_key, runs))
    results = fit_many(
        run_keys(fit_key, runs),
        task.target(data.observed),
        guides,
        objective=objective,
        steps=settings.steps,
        batched_target=True,
        batched_guide=True,
        progress=progress,
        description=f"{task.title}, {method}",
        **_recipe(task, settings),
    )
    if any(result.status == "interrupted" for result in results):
        # Interrupted runs are not recorded: they would be taken for finished ones.
        raise KeyboardInterrupt
    fitted = [result.posterior.guide for result in results]
    stacked = jax.tree_util.tree_map(_stacked, *fitted)
    return Fits(data, stacked, results, run_keys(metric_key, runs))


def _stacked(*leaves: Any) -> Any:
    return jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0]


def _recipe(task: AbstractTask, settings: Settings) -> dict[str, Any]:
    if settings.recipe == "paper":
        return {"optimizer": paper_optimizer(task.learning_rate), "start": None}
    return {"start": "auto"}


def run_piece(
    task_name: str,
    method: str,
    runs: int,
    settings: Settings,
    source: AbstractReferenceSource,
    records: RecordStore,
    *,
    objective: AbstractObjective | None = None,
    progress: bool | AbstractReporter = True,
) -> list[Record]:
    """Bring the records of a task and method up to so many runs.

    Runs that are on record are not repeated.

    Args:
        task_name: The task.
        method: The method.
        runs: Number of runs wanted.
        settings: What to run them with.
        source: Where references come from.
        records: Where results are kept.
        objective: An objective of your own, which the method then only names.
        progress: Show a bar.

    Returns:
        All records of the piece, by run.

    Example:
        >>> import tempfile
        >>> from softcvi_experiments import references
        >>> piece = run_piece(
        ...     "linear_regression", "elbo", 1, Settings(steps=2),
        ...     references.BuiltinReferences(), RecordStore(tempfile.mkdtemp()),
        ...     progress=False,
        ... )
        >>> piece[0]["status"]
        'finished'
    """
    identity = settings.identity(task_name, method)
    done = {record["run"] for record in records.find(identity)}
    missing = [run for run in range(runs) if run not in done]
    if missing:
        fits = fit_runs(
            task_name,
            method,
            missing,
            settings,
            source,
            objective=objective,
            progress=progress,
        )
        records.add(_records(identity, missing, fits, get_task(task_name)))
    return [record for record in records.find(identity) if record["run"] < runs]


def _records(
    identity: Record, runs: list[int], fits: Fits, task: AbstractTask
) -> list[Record]:
    began = time.perf_counter()
    data = fits.data
    metrics = jax.device_get(
        measure(
            fits.keys,
            fits.guides,
            task.target(data.observed),
            data.draws,
            jnp.asarray(data.data_set),
        )
    )
    seconds_metrics = time.perf_counter() - began
    device = jax.devices()[0]
    return [
        {
            **identity,
            "run": run,
            "data_set": data.names[data.data_set[i]],
            "log_prob_reference": float(metrics.log_prob_reference[i]),
            "log_prob_limit": None if data.limit is None else float(data.limit[i]),
            "posterior_mean_accuracy": float(metrics.posterior_mean_accuracy[i]),
            "coverage_nominal": _rounded(metrics.coverage_nominal),
            "coverage_actual": _rounded(metrics.coverage_actual[i]),
            "seconds_compile": round(result.seconds_compile + result.seconds_start, 3),
            "seconds_run": round(result.seconds_run, 3),
            "seconds_metrics": round(seconds_metrics, 3),
            "runs_in_program": len(runs),
            "device": f"{device.platform} {device.device_kind}",
            "status": result.status,
            "message": result.message,
            "label_ess": result.history.last()["label_ess"],
            "num_bad_densities": result.num_bad_densities,
            "num_skipped_steps": result.num_skipped_steps,
        }
        for i, (run, result) in enumerate(zip(runs, fits.results, strict=True))
    ]


def _rounded(values: np.ndarray) -> list[float]:
    return [round(float(value), 5) for value in values]
