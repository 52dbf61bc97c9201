"""Simulation-based calibration: are posteriors right on average over data sets?"""

import contextlib
import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray, PyTree

from softcvi.fitting import as_reporter, fit_many
from softcvi.fitting._loop import taken
from softcvi.guides import AbstractGuide, full_rank, mean_field
from softcvi.objectives import AbstractObjective
from softcvi.posterior import _storage
from softcvi.sweeps._calibration import Calibration
from softcvi.sweeps._executors import AbstractExecutor
from softcvi.sweeps._sweep import raise_if_interrupted
from softcvi.targets import AbstractTarget

_FULL_RANK_DIM = 100
# Data sets that a worker takes at a time.
_BATCH = 16


def calibrate(
    key: PRNGKeyArray,
    target: AbstractTarget,
    guide: AbstractGuide | None = None,
    *,
    simulate: Callable[[PRNGKeyArray], tuple[PyTree, PyTree]] | None = None,
    num_datasets: int = 200,
    num_draws: int = 200,
    objective: AbstractObjective | None = None,
    steps: int = 5_000,
    progress: bool = True,
    executor: AbstractExecutor | None = None,
) -> Calibration:
    """Fit many simulated data sets, and rank the values that made them.

    If posteriors are right, the value drawn from the prior that made a data set is as
    likely to have any rank among the draws of its posterior as any other (Talts et al.,
    2018). A guide that is too narrow has too many extreme ranks.

    Args:
        key: Random key.
        target: The posterior of one data set: of a NumPyro model, or a
            ``DensityTarget`` with ``observed``. Its data are replaced.
        guide: The guide to test; a full-rank normal by default, factorised above 100
            parameters.
        simulate: JAX function of a key that draws parameters from the prior, in the
            model's coordinates, and data given them: ``(parameters, observed)``. A
            NumPyro model is one by itself.
        num_datasets: How many data sets; errors fall with their root.
        num_draws: Draws of each posterior.
        objective: ``SoftCVI()`` by default.
        steps: Optimisation steps of each fit; all run in one program.
        progress: Show a bar on a terminal.
        executor: Where batches of the data sets are fitted, as for ``sweep``; by
            default all of them in this process. Other processes import the functions
            of ``target``, which must be those of a module.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> def simulate(key):
        ...     one, two = jax.random.split(key)
        ...     mu = jax.random.normal(one)
        ...     return mu, mu + jax.random.normal(two, (5,))
        >>> target = softcvi.DensityTarget(
        ...     lambda mu, y: -0.5 * mu**2 - 0.5 * jnp.sum((y - mu) ** 2),
        ...     jnp.zeros(()), observed=jnp.zeros(5),
        ... )
        >>> check = softcvi.calibrate(
        ...     jax.random.key(0), target, simulate=simulate, num_datasets=20,
        ...     steps=200, progress=False,
        ... )
        >>> check.calibrated
        True
    """
    if not isinstance(target, AbstractTarget):
        raise TypeError(
            f"target: expected a target; got {type(target).__name__}. Call "
            "calibrate(key, target, simulate=function)."
        )
    for name, count in {"num_datasets": num_datasets, "num_draws": num_draws}.items():
        if count < 2:
            raise ValueError(f"{name}: at least 2; got {count}.")
    data_key, fit_key, draw_key = jax.random.split(key, 3)
    made = jax.vmap(target.simulate if simulate is None else simulate)
    truths, observed = made(jax.random.split(data_key, num_datasets))
    target.with_observed(taken(observed, 0))  # refused here, if at all
    if guide is None:
        make = full_rank if target.structure.size <= _FULL_RANK_DIM else mean_field
        guide = make(target)
    keys = jax.random.split(fit_key, num_datasets)
    draw_keys = [jax.random.fold_in(draw_key, i) for i in range(num_datasets)]
    ranks_of = functools.partial(
        _ranks, target, _Portable(guide), objective, steps, num_draws, progress=False
    )
    named = jax.vmap(target.describe)(truths)
    datasets = [
        _DataSet(keys[i], draw_keys[i], taken(named, i), taken(observed, i))
        for i in range(num_datasets)
    ]
    if executor is None:
        found = ranks_of(datasets, progress=progress)
    else:
        found = _in_batches(executor, ranks_of, datasets, progress)
    if not found:
        raise ValueError("simulate: every fit failed; check target on simulated data.")
    stacked = {name: np.array([one[name] for one in found]) for name in found[0]}
    return Calibration(stacked, num_draws, num_datasets - len(found))


class _DataSet(NamedTuple):
    """A data set, the values that made it, and the keys of its fit and its draws."""

    key: PRNGKeyArray
    draw_key: PRNGKeyArray
    truth: dict[str, Any]
    observed: Any


class _Portable:
    """A guide that goes to other processes as it goes to files.

    Pickle has no way for the functions of JAX that are part of a guide.
    """

    def __init__(self, guide: AbstractGuide):
        self.guide = guide

    def __getstate__(self) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            _storage.write(path := Path(folder) / "guide", {"guide": self.guide}, {})
            return path.read_bytes()

    def __setstate__(self, content: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (path := Path(folder) / "guide").write_bytes(content)
            self.guide = _storage.read(path)[0]["guide"]


def _in_batches(
    executor: AbstractExecutor,
    ranks_of: Callable[[list[_DataSet]], list[dict[str, int]]],
    datasets: list[_DataSet],
    progress: bool,
) -> list[dict[str, int]]:
    batches = [
        datasets[start : start + _BATCH] for start in range(0, len(datasets), _BATCH)
    ]
    found: dict[int, list[dict[str, int]]] = {}
    outcomes = executor.run_with_progress(
        ranks_of, batches, as_reporter(progress), "data sets"
    )
    with contextlib.closing(outcomes):
        for outcome in outcomes:
            if outcome.error is not None:
                raise RuntimeError(f"executor: a batch failed: {outcome.error}")
            found[outcome.index] = outcome.value
    return [one for index in sorted(found) for one in found[index]]


def _ranks(
    target: AbstractTarget,
    portable: _Portable,
    objective: AbstractObjective | None,
    steps: int,
    num_draws: int,
    datasets: list[_DataSet],
    progress: bool,
) -> list[dict[str, int]]:
    """The rank of each scalar, for each data set whose fit has not failed."""
    observed = jax.tree_util.tree_map(
        lambda *leaves: jnp.stack(leaves), *(one.observed for one in datasets)
    )
    results = fit_many(
        jnp.stack([one.key for one in datasets]),
        eqx.filter_vmap(target.with_observed)(observed),
        portable.guide,
        objective=objective,
        steps=steps,
        batched_target=True,
        progress=progress,
        description="data sets",
    )
    raise_if_interrupted(results)
    found = []
    for one, result in zip(datasets, results, strict=True):
        if result.status == "failed":
            continue
        draws, ranks = result.sample(one.draw_key, num_draws), {}
        for name, truth in one.truth.items():
            below = np.sum(np.asarray(draws[name]) < np.asarray(truth), axis=0)
            for index in np.ndindex(below.shape):
                label = name + (f"[{','.join(map(str, index))}]" if index else "")
                ranks[label] = int(below[index])
        found.append(ranks)
    return found
