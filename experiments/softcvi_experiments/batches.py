r"""Mini-batches of a global latent: bias and time of four ways to fit.

A logistic regression by ``softcvi.fit`` on all rows, on control variates, and on plain
mini-batches with SoftCVI and with the ELBO, from the same start::

    python -m softcvi_experiments.batches --out results/batches

Errors are those of the guide itself, before weights correct it, against Newton's answer
in double precision.
"""

import dataclasses
import time
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import softcvi
from softcvi.targets import ControlVariateTarget, DataTarget, MiniBatchTarget
from softcvi_experiments.children import Task
from softcvi_experiments.rows import NUM_PARAMETERS, answer, logistic, make_data
from softcvi_experiments.store import Record
from softcvi_experiments.study import AbstractStudy, answered, command
from softcvi_experiments.tables import markdown_table

WAYS = {
    "all rows, SoftCVI": ("all", None),
    "control variates, SoftCVI": ("control", None),
    "plain mini-batches, SoftCVI": ("plain", None),
    "plain mini-batches, ELBO": ("plain", softcvi.ELBO()),
}
_DRAWS = 20_000


def measure(way: str, rows: int, batch: int, steps: int) -> Record:
    """One fit beside the answer.

    Example:
        >>> record = measure("control variates, SoftCVI", 2000, 100, 50)
        >>> record["mean_error"] < 1.0
        True
    """
    kind, objective = WAYS[way]
    data = make_data("logistic", rows)
    mean, sd = answer("logistic", data)

    def log_prior(theta):
        return -0.5 * jnp.sum(theta**2)

    like = jnp.zeros(NUM_PARAMETERS)
    whole = DataTarget(
        log_prior, logistic, like, data=data, reference=jnp.asarray(mean, like.dtype)
    )
    # The same normal for all, from all rows: what is compared is what training does.
    [mode, *_] = softcvi.starts.Explore().find(jax.random.key(0), whole).modes
    guide = softcvi.guides.full_rank(whole)
    guide = softcvi.guides.whitened(
        guide, jnp.asarray(mode.mean, like.dtype), _factor(mode, like)
    )
    target: softcvi.targets.AbstractTarget = whole
    if kind == "control":
        target = ControlVariateTarget(whole, mode.mean, batch)
    if kind == "plain":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target = MiniBatchTarget(
                log_prior,
                lambda theta, part: jnp.sum(logistic(theta, part)),
                like,
                data=data,
                batch_size=batch,
            )
    began = time.process_time()
    result = softcvi.fit(
        jax.random.key(1),
        target,
        guide,
        objective=objective,
        steps=steps,
        start=None,
        progress=False,
    )
    seconds = time.process_time() - began
    [draws] = result.posterior.sample(jax.random.key(2), _DRAWS).values()
    draws = np.asarray(draws, np.float64)
    ratios = draws.std(axis=0) / sd
    return {
        "way": way,
        "rows": rows,
        "batch": batch,
        "steps": steps,
        "seconds_cpu": seconds,
        "seconds_run": result.seconds_run,
        "mean_error": float(np.max(np.abs(draws.mean(axis=0) - mean) / sd)),
        "sd_ratios": [float(ratios.min()), float(ratios.max())],
    }


def _factor(mode: Any, like: Any) -> Any:
    return jnp.asarray(np.linalg.cholesky(mode.dense), like.dtype)


def table(records: list[Record]) -> str:
    """Bias and time of each way."""
    header = ["way", "rows", "per step", "worst mean, sd", "sds, times", "CPU, s"]
    order = list(WAYS)
    rows = [
        [
            r["way"],
            f"{r['rows']:,}",
            f"{r['rows' if r['way'] == order[0] else 'batch']:,}",
            f"{r['mean_error']:.2f}",
            "{:.2f} to {:.2f}".format(*r["sd_ratios"]),
            f"{r['seconds_cpu']:.0f}",
        ]
        for r in sorted(records, key=lambda r: (r["rows"], order.index(r["way"])))
    ]
    return markdown_table(header, rows)


@dataclasses.dataclass(frozen=True)
class Study(AbstractStudy):
    """All ways to fit.

    Attributes:
        rows: Rows of the data.
        batch: Rows of a mini-batch.
        steps: Steps of each fit.

    Example:
        >>> len(Study().tasks())
        4
    """

    name = "batches"
    worker = "softcvi_experiments.batches:measure"
    identity = ("way", "rows", "batch", "steps")
    timeout = 3600.0
    timed = True

    rows: int = 50_000
    batch: int = 500
    steps: int = 5_000

    def tasks(self) -> list[Task]:
        """One fit in each way."""
        return [{"way": way, **dataclasses.asdict(self)} for way in WAYS]

    def page(self, records: list[Record]) -> str:
        """The table."""
        return f"# Mini-batches\n\n{table(answered(records))}\n"


if __name__ == "__main__":
    command(Study, __doc__)
