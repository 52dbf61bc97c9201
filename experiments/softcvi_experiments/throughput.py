r"""Rows per second beside NumPyro's SVI and PyMC's mini-batch ADVI.

One logistic regression with 20 coefficients, full-rank normals::

    taskset -c 1 python -m softcvi_experiments.throughput --out results/throughput
    python -m softcvi_experiments.throughput --backend gpu --rows 10000000 \
        --ways softcvi "NumPyro SVI" --out results/throughput

What a step costs is the difference between a long and a short run over the steps in
between, so that compilation does not count: in CPU time, which leaves out other work on
the machine, and on accelerators in wall time. On one core, since threads that wait for
one another while others use the cores count as CPU time, too.
"""

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import softcvi
from softcvi.targets import ControlVariateTarget, DataTarget
from softcvi_experiments.children import Task
from softcvi_experiments.rows import (
    NUM_PARAMETERS,
    PLATFORMS,
    answer,
    logistic,
    make_data,
)
from softcvi_experiments.store import Record
from softcvi_experiments.study import AbstractStudy, answered, choices, command
from softcvi_experiments.tables import markdown_table

_SHORT, _LONG, _MOST = 200, 1_000, 100_000
Run = Callable[[int], None]


def softcvi_run(rows: int, batch: int | None) -> tuple[Run, int]:
    """Fits by SoftCVI from the answer, and their particles.

    Example:
        >>> run, particles = softcvi_run(500, 50)
        >>> particles
        8
    """
    data = make_data("logistic", rows)
    mean, sd = answer("logistic", data)
    like = jnp.zeros(NUM_PARAMETERS)
    whole = DataTarget(
        lambda theta: -0.5 * jnp.sum(theta**2),
        logistic,
        like,
        data=data,
        reference=jnp.asarray(mean, like.dtype),
    )
    target: softcvi.targets.AbstractTarget = whole
    if batch is not None:
        target = ControlVariateTarget(whole, mean, batch)
    guide = softcvi.guides.whitened(
        softcvi.guides.full_rank(whole),
        jnp.asarray(mean, like.dtype),
        jnp.diag(jnp.asarray(sd, like.dtype)),
    )

    def run(steps: int) -> None:
        softcvi.fit(
            jax.random.key(0), target, guide, steps=steps, start=None, progress=False
        )

    return run, softcvi.SoftCVI().num_particles


def numpyro_run(rows: int, batch: int | None) -> tuple[Run, int]:
    """The same model by NumPyro's SVI with a full-rank normal."""
    import numpyro
    import numpyro.distributions as dist
    import optax
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoMultivariateNormal

    x, y = make_data("logistic", rows)

    def model(x, y):
        normal = dist.Normal(0.0, 1.0).expand([NUM_PARAMETERS]).to_event(1)
        theta = numpyro.sample("theta", normal)
        with numpyro.plate("rows", rows, subsample_size=batch):
            some = numpyro.subsample(x, 1)
            outcome = numpyro.subsample(y, 0)
            numpyro.sample("y", dist.Bernoulli(logits=some @ theta), obs=outcome)

    guide = AutoMultivariateNormal(model)
    svi = SVI(model, guide, optax.adam(1e-3), Trace_ELBO())

    def run(steps: int) -> None:
        found = svi.run(jax.random.key(0), steps, x, y, progress_bar=False)
        jax.block_until_ready(found.losses)

    return run, 1


def pymc_run(rows: int, batch: int | None) -> tuple[Run, int]:
    """The same model by PyMC's full-rank ADVI."""
    import pymc as pm

    x, y = map(np.asarray, make_data("logistic", rows))
    y = y.astype(np.int32)  # a mini-batch that needs a cast cannot be observed

    def run(steps: int) -> None:
        with pm.Model():
            some, outcome = (
                (x, y) if batch is None else pm.Minibatch(x, y, batch_size=batch)
            )
            theta = pm.Normal("theta", 0.0, 1.0, shape=NUM_PARAMETERS)
            pm.Bernoulli("y", logit_p=some @ theta, observed=outcome, total_size=rows)
            pm.fit(steps, method="fullrank_advi", progressbar=False, random_seed=0)

    return run, 1


MAKERS = {
    "softcvi": softcvi_run,
    "NumPyro SVI": numpyro_run,
    "PyMC ADVI": pymc_run,
}


def measure(way: str, rows: int, batch: int | None, backend: str = "cpu") -> Record:
    """What a step of one of the packages costs.

    Example:
        >>> measure("softcvi", 500, 50)["seconds_per_step"] > 0
        True
    """
    run, particles = MAKERS[way](rows, batch)
    clock = time.process_time if backend == "cpu" else time.perf_counter
    short, steps = _seconds(run, _SHORT, clock), _LONG
    while (more := _seconds(run, steps, clock) - short) < 0.5 * short and steps < _MOST:
        steps *= 10  # compilation hides what so few steps cost
    per_step = more / (steps - _SHORT)
    if not per_step > 0:
        raise RuntimeError(f"{way}: {steps} steps take no longer than {_SHORT}.")
    return {
        "way": way,
        "rows": rows,
        "batch": batch,
        "backend": jax.default_backend(),
        "particles": particles,
        "seconds_per_step": per_step,
    }


def _seconds(run: Run, steps: int, clock: Callable[[], float]) -> float:
    run(steps)  # imports, and programs, which may differ with the number of steps
    began = clock()
    run(steps)
    return clock() - began


def table(records: list[Record]) -> str:
    """Cost of a step, and rows per second."""
    header = ["package", "device", "rows", "per step", "particles", "us per step"]
    header += ["million rows read per s", "million row likelihoods per s"]
    order = list(MAKERS)
    rows = []

    def place(r: Record) -> tuple:
        return r.get("backend", "cpu"), r["batch"] or 0, order.index(r["way"])

    for r in sorted(records, key=place):
        read = (r["batch"] or r["rows"]) / r["seconds_per_step"] / 1e6
        rows.append(
            [
                r["way"],
                r.get("backend", "cpu"),
                f"{r['rows']:,}",
                "all" if r["batch"] is None else f"{r['batch']:,}",
                str(r["particles"]),
                f"{1e6 * r['seconds_per_step']:.0f}",
                f"{read:.1f}",
                f"{read * r['particles']:.1f}",
            ]
        )
    return markdown_table(header, rows)


@dataclasses.dataclass(frozen=True)
class Study(AbstractStudy):
    """All packages, with all rows and with mini-batches.

    Attributes:
        ways: Names of packages.
        rows: Rows of the data.
        batch: Rows of a mini-batch.
        backend: What JAX computes on.

    Example:
        >>> len(Study(["softcvi"]).tasks())
        2
    """

    name = "throughput"
    worker = "softcvi_experiments.throughput:measure"
    identity = ("way", "rows", "batch", "backend")
    timeout = 3600.0
    timed = True

    ways: Sequence[str] = choices(MAKERS)
    rows: int = 20_000
    batch: int = 500
    backend: str = choices(PLATFORMS, "cpu")

    def tasks(self) -> list[Task]:
        """Each package with all rows and with mini-batches."""
        return [
            {
                "way": way,
                "rows": self.rows,
                "batch": batch,
                "backend": self.backend,
            }
            for way in self.ways
            for batch in (None, self.batch)
        ]

    def environment(self, out: Path) -> dict[str, str]:
        """As for others, on the backend."""
        return super().environment(out) | {"JAX_PLATFORMS": PLATFORMS[self.backend]}

    def page(self, records: list[Record]) -> str:
        """The table."""
        return f"# Rows per second\n\n{table(answered(records))}\n"


if __name__ == "__main__":
    command(Study, __doc__)
