r"""Regressions with many rows: error, time and memory of ``softcvi.fit`` at defaults.

A million rows on this machine, then ten million and a hundred million on a GPU::

    python -m softcvi_experiments.rows --rows 1000000 --out results/rows
    python -m softcvi_experiments.rows --rows 10000000,100000000 --backend gpu \
        --out results/rows

Each run is a process of its own, since the peak of memory is that of a process. The
answer of the linear model is exact; that of the logistic one is Laplace's in double
precision, which at so many rows is as good.
"""

import dataclasses
import resource
import time
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import softcvi
from softcvi_experiments.children import Task
from softcvi_experiments.store import Record
from softcvi_experiments.study import AbstractStudy, answered, choices, command
from softcvi_experiments.tables import markdown_table

NUM_PARAMETERS = 20
_PLATFORMS = {"cpu": "cpu", "gpu": "cuda", "tpu": "tpu"}
_BLOCK = 1 << 18
_DRAWS = 4_000
_FEW_ROWS = 10_000
Data = tuple[Float[Array, "n p"], Float[Array, " n"]]


def linear(theta: Array, rows: Data) -> Float[Array, " n"]:
    """Log likelihood of each row, with unit noise.

    Example:
        >>> linear(jnp.ones(2), (jnp.ones((1, 2)), jnp.ones(1))).tolist()
        [-0.5]
    """
    x, y = rows
    return -0.5 * (y - x @ theta) ** 2


def logistic(theta: Array, rows: Data) -> Float[Array, " n"]:
    """Log likelihood of each row with an outcome of zero or one.

    Example:
        >>> logistic(jnp.zeros(2), (jnp.ones((1, 2)), jnp.ones(1))).round(3).tolist()
        [-0.6930000185966492]
    """
    x, y = rows
    eta = x @ theta
    return y * eta - jax.nn.softplus(eta)


MODELS = {"linear": linear, "logistic": logistic}


def make_data(model: str, num_rows: int) -> Data:
    """Rows from the model itself, made where they are used.

    Example:
        >>> x, y = make_data("linear", 5)
        >>> x.shape, y.shape
        ((5, 20), (5,))
    """
    theta = jnp.linspace(-1.0, 1.0, NUM_PARAMETERS)

    @jax.jit
    def make(key):
        key_x, key_y = jax.random.split(key)
        x = jax.random.normal(key_x, (num_rows, NUM_PARAMETERS), jnp.float32)
        eta = x @ theta
        if model == "linear":
            return x, eta + jax.random.normal(key_y, (num_rows,), jnp.float32)
        chance = jax.random.uniform(key_y, (num_rows,), jnp.float32)
        return x, (chance < jax.nn.sigmoid(eta)).astype(jnp.float32)

    return jax.block_until_ready(make(jax.random.key(0)))


def answer(model: str, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviations in double precision, by Newton's steps.

    Example:
        >>> mean, sd = answer("linear", make_data("linear", 1000))
        >>> mean.shape, bool(np.all(sd < 0.05))
        ((20,), True)
    """
    x, y = data
    theta = np.zeros(NUM_PARAMETERS)
    for _ in range(1 if model == "linear" else 12):
        gradient, precision = -theta, np.eye(NUM_PARAMETERS)
        for first in range(0, len(y), _BLOCK):
            part = np.asarray(x[first : first + _BLOCK], np.float64)
            outcome = np.asarray(y[first : first + _BLOCK], np.float64)
            eta = part @ theta
            fitted = eta if model == "linear" else 1 / (1 + np.exp(-eta))
            weight = 1.0 if model == "linear" else (fitted * (1 - fitted))[:, None]
            gradient = gradient + part.T @ (outcome - fitted)
            precision = precision + part.T @ (weight * part)
        theta = theta + np.linalg.solve(precision, gradient)
    return theta, np.sqrt(np.diag(np.linalg.inv(precision)))


def measure(model: str, rows: int, steps: int, backend: str = "cpu") -> Record:
    """One fit beside the answer, on the backend that the process has.

    Example:
        >>> measure("linear", 500, 100)["trusted"]
        True
    """
    data = make_data(model, rows)
    # As a user would: from some of the rows, not from the answer.
    rough, _ = answer(model, (data[0][:_FEW_ROWS], data[1][:_FEW_ROWS]))
    before = _peak_bytes()
    target = softcvi.targets.DataTarget(
        lambda theta: -0.5 * jnp.sum(theta**2),
        MODELS[model],
        jnp.zeros(NUM_PARAMETERS),
        data=data,
        reference=jnp.asarray(rough, jnp.float32),
    )
    began, began_cpu = time.perf_counter(), time.process_time()
    result = softcvi.fit(jax.random.key(1), target, steps=steps, progress=False)
    level = result.verdict.level
    seconds = time.perf_counter() - began
    seconds_cpu = time.process_time() - began_cpu
    peak = _peak_bytes()
    mean, sd = answer(model, data)
    [draws] = result.sample(jax.random.key(2), _DRAWS).values()
    draws = np.asarray(draws, np.float64)
    ratios = draws.std(axis=0) / sd
    return {
        "model": model,
        "rows": rows,
        "steps": steps,
        "backend": jax.default_backend(),
        "data_bytes": int(data[0].nbytes + data[1].nbytes),
        "peak_bytes": peak,
        "peak_bytes_before": before,
        "seconds": seconds,
        "seconds_cpu": seconds_cpu,
        "seconds_start": result.seconds_start,
        "seconds_run": result.seconds_run,
        "mean_error": float(np.max(np.abs(draws.mean(axis=0) - mean) / sd)),
        "sd_ratios": [float(ratios.min()), float(ratios.max())],
        "level": level,
        "trusted": result.verdict.trusted,
    }


def _peak_bytes() -> int:
    """Most memory that was in use so far: of the device, or else of the process."""
    stats = jax.local_devices()[0].memory_stats()
    if stats:
        return int(stats["peak_bytes_in_use"])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def table(records: list[Record]) -> str:
    """Error, memory and time of each run."""
    header = ["model", "rows", "device", "worst mean, sd", "sds, times", "verdict"]
    header += ["data, GB", "before, GB", "peak, GB", "CPU, s"]
    rows = [
        [
            r["model"],
            f"{r['rows']:.0e}".replace("e+0", "e"),
            r["backend"],
            f"{r['mean_error']:.3f}",
            "{:.3f} to {:.3f}".format(*r["sd_ratios"]),
            r["level"],
            f"{r['data_bytes'] / 1e9:.2f}",
            f"{r['peak_bytes_before'] / 1e9:.2f}",
            f"{r['peak_bytes'] / 1e9:.2f}",
            f"{r['seconds_cpu']:.0f}" if "seconds_cpu" in r else "",
        ]
        for r in sorted(records, key=lambda r: (r["model"], r["rows"]))
    ]
    return markdown_table(header, rows)


@dataclasses.dataclass(frozen=True)
class Study(AbstractStudy):
    """What to run.

    Attributes:
        models: Names of models.
        rows: Numbers of rows.
        steps: Steps of each fit.
        backend: What JAX computes on.

    Example:
        >>> len(Study(["linear", "logistic"], [1000]).tasks())
        2
    """

    name = "rows"
    worker = "softcvi_experiments.rows:measure"
    identity = ("model", "rows", "steps", "backend")
    fresh = True
    timeout = 7200.0
    timed = True

    models: Sequence[str] = choices(MODELS, ("linear",))
    rows: Sequence[int] = (1_000_000,)
    steps: int = 10_000
    backend: str = choices(_PLATFORMS, "cpu")

    def tasks(self) -> list[Task]:
        """Each model with each number of rows."""
        fixed = {"steps": self.steps, "backend": self.backend}
        return [
            {"model": model, "rows": rows, **fixed}
            for model in self.models
            for rows in self.rows
        ]

    def environment(self, out: Path) -> dict[str, str]:
        """As for others, on the backend."""
        return super().environment(out) | {"JAX_PLATFORMS": _PLATFORMS[self.backend]}

    def kind(self, task: Task) -> tuple:
        """Each case by itself: the peak of memory is that of a process."""
        return self.case_of(task)

    def page(self, records: list[Record]) -> str:
        """The table."""
        return f"# Many rows\n\n{table(answered(records))}\n"


if __name__ == "__main__":
    command(Study, __doc__)
