r"""Regressions with many rows: error, time and memory of ``softcvi.fit`` at defaults.

A million rows on this machine, a hundred million on a GPU, and rows in files beside a
GPU that may use a few thousandths of its memory, or a processor that may keep a few
megabytes of them::

    python -m softcvi_experiments.rows --rows 1000000 --out results/rows
    python -m softcvi_experiments.rows --rows 100000000 --backend gpu --out results/rows
    python -m softcvi_experiments.rows --rows 15000000 --backend gpu --place files \
        --thousandths 2 --out results/rows
    python -m softcvi_experiments.rows --rows 4000000 --place files \
        --megabytes 60 --out results/rows

Each run is a process of its own, since the peak of memory is that of a process. The
answer of the linear model is exact; that of the logistic one is Laplace's in double
precision, which at so many rows is as good.
"""

import contextlib
import dataclasses
import functools
import math
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

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
_PLACES = ("memory", "files")
PLATFORMS = {"cpu": "cpu", "gpu": "cuda", "tpu": "tpu"}
# Rows that are made, summed in double precision, and written at a time: few, so that
# the peak of memory is that of the fit.
_BLOCK = 100_000
_DRAWS = 16_000
_FEW_ROWS = 10_000
# Rows that are read from files at a time, for a device with little memory.
_BLOCK_OF_FILES = 1 << 16
# Bytes in which they are kept by default.
_MEMORY = 1 << 30
# Newton's steps to the mode of the logistic model.
_NEWTON = 12
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
    """Rows from the model itself, made where they are used, in little more memory.

    Example:
        >>> x, y = make_data("linear", 5)
        >>> x.shape, y.shape
        ((5, 20), (5,))
    """
    block = _block(num_rows)

    @jax.jit
    def make(key):
        numbers = jnp.arange(num_rows // block)
        blocks = jax.lax.map(
            lambda i: _some_rows(model, jax.random.fold_in(key, i), block), numbers
        )
        return jax.tree_util.tree_map(
            lambda leaf: leaf.reshape(num_rows, *leaf.shape[2:]), blocks
        )

    return jax.block_until_ready(make(jax.random.key(0)))


def write_data(model: str, num_rows: int, folder: str) -> tuple[str, str]:
    """The same rows in two files, of which no more than a block is in memory.

    Example:
        >>> paths = write_data("linear", 5, tempfile.mkdtemp())
        >>> [np.load(path).shape for path in paths]
        [(5, 20), (5,)]
    """
    paths = f"{folder}/x.npy", f"{folder}/y.npy"
    shapes = (num_rows, NUM_PARAMETERS), (num_rows,)
    block = _block(num_rows)
    make = jax.jit(functools.partial(_some_rows, model), static_argnums=1)
    # Written and not mapped: pages of a mapped file count as memory of the process.
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open(path, "wb")) for path in paths]
        for file, shape in zip(files, shapes, strict=True):
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
        for i in range(num_rows // block):
            part = make(jax.random.fold_in(jax.random.key(0), i), block)
            for file, leaf in zip(files, part, strict=True):
                np.asarray(leaf).tofile(file)
    return paths


def _block(num_rows: int) -> int:
    return math.gcd(num_rows, _BLOCK)


def _some_rows(model: str, key: Array, count: int) -> Data:
    key_x, key_y = jax.random.split(key)
    x = jax.random.normal(key_x, (count, NUM_PARAMETERS), jnp.float32)
    eta = x @ jnp.linspace(-1.0, 1.0, NUM_PARAMETERS)
    if model == "linear":
        return x, eta + jax.random.normal(key_y, (count,), jnp.float32)
    chance = jax.random.uniform(key_y, (count,), jnp.float32)
    return x, (chance < jax.nn.sigmoid(eta)).astype(jnp.float32)


def answer(model: str, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviations in double precision, by Newton's steps.

    Example:
        >>> mean, sd = answer("linear", make_data("linear", 1000))
        >>> mean.shape, bool(np.all(sd < 0.05))
        ((20,), True)
    """
    theta = np.zeros(NUM_PARAMETERS)
    for _ in range(1 if model == "linear" else _NEWTON):
        gradient, precision = -theta, np.eye(NUM_PARAMETERS)
        for part in _blocks_of(data):
            with jax.enable_x64(True):
                slope, curvature = _slope_and_curvature(model, theta, part)
            gradient = gradient + np.asarray(slope)
            precision = precision + np.asarray(curvature)
        theta = theta + np.linalg.solve(precision, gradient)
    return theta, np.sqrt(np.diag(np.linalg.inv(precision)))


def _blocks_of(data: Data) -> Iterator[Data]:
    x, y = data
    for first in range(0, len(y), _BLOCK):
        yield x[first : first + _BLOCK], y[first : first + _BLOCK]


@functools.partial(jax.jit, static_argnums=0)
def _slope_and_curvature(model: str, theta: Array, data: Data) -> tuple[Array, Array]:
    x, y = (leaf.astype(jnp.float64) for leaf in data)
    eta = x @ theta
    if model == "linear":
        return x.T @ (y - eta), x.T @ x
    fitted = jax.nn.sigmoid(eta)
    return x.T @ (y - fitted), x.T @ ((fitted * (1 - fitted))[:, None] * x)


def measure(
    model: str,
    rows: int,
    steps: int,
    backend: str = "cpu",
    place: str = "memory",
    thousandths: int = 0,
    megabytes: int = 0,
) -> Record:
    """One fit beside the answer, on the backend that the process has.

    Example:
        >>> measure("linear", 500, 100)["trusted"]
        True
    """
    with tempfile.TemporaryDirectory() as folder:
        if place == "files":
            paths = write_data(model, rows, folder)
            host: Data = tuple(np.load(path, mmap_mode="r") for path in paths)
            data: Any = softcvi.targets.NpyRows(paths)
        else:
            data = host = make_data(model, rows)
        return {
            "model": model,
            "rows": rows,
            "steps": steps,
            "backend": jax.default_backend(),
            "place": place,
            "thousandths": thousandths,
            "megabytes": megabytes,
            **_measured(model, steps, data, host, megabytes),
        }


def _measured(model: str, steps: int, data: Any, host: Data, megabytes: int) -> Record:
    # As a user would: from some of the rows, not from the answer.
    rough, _ = answer(model, (host[0][:_FEW_ROWS], host[1][:_FEW_ROWS]))
    before = _peak_bytes()
    target = softcvi.targets.DataTarget(
        lambda theta: -0.5 * jnp.sum(theta**2),
        MODELS[model],
        jnp.zeros(NUM_PARAMETERS),
        data=data,
        reference=jnp.asarray(rough, jnp.float32),
        block=None if data is host else _BLOCK_OF_FILES,
        memory=megabytes * 10**6 or _MEMORY,
    )
    began, began_cpu = time.perf_counter(), time.process_time()
    result = softcvi.fit(jax.random.key(1), target, steps=steps, progress=False)
    level = result.verdict.level
    seconds = time.perf_counter() - began
    seconds_cpu = time.process_time() - began_cpu
    peak = _peak_bytes()
    found_mean, found_sd = _moments(result)
    mean, sd = answer(model, host)
    ratios = found_sd / sd
    return {
        "data_bytes": int(host[0].nbytes + host[1].nbytes),
        "memory_bytes": megabytes * 10**6 or _memory_limit(),
        "peak_bytes": peak,
        "peak_bytes_before": before,
        "seconds": seconds,
        "seconds_cpu": seconds_cpu,
        "seconds_start": result.seconds_start,
        "seconds_compile": result.seconds_compile,
        "seconds_run": result.seconds_run,
        "mean_error": float(np.max(np.abs(found_mean - mean) / sd)),
        "sd_ratios": [float(ratios.min()), float(ratios.max())],
        "level": level,
        "trusted": result.verdict.trusted,
    }


def _moments(result: softcvi.FitResult) -> tuple[np.ndarray, np.ndarray]:
    """Of the answer: so many weighted draws that their own errors are below 1 %."""
    if result.chains is not None:
        [values] = result.sample(jax.random.key(2), _DRAWS).values()
        weights = np.full(_DRAWS, 1 / _DRAWS)
    else:
        sample = result.posterior.importance(jax.random.key(2), _DRAWS)
        [values] = sample.draws.values()
        weights = np.exp(sample.log_weights)
    draws = np.asarray(values, np.float64)
    mean = weights @ draws
    return mean, np.sqrt(weights @ (draws - mean) ** 2)


def _memory_limit() -> int | None:
    """Bytes that the device may use; None where nothing limits them."""
    stats = jax.local_devices()[0].memory_stats()
    return None if not stats else int(stats["bytes_limit"])


def _peak_bytes() -> int:
    """Most memory that was in use so far: of the device, or else of the process."""
    stats = jax.local_devices()[0].memory_stats()
    if stats:
        return int(stats["peak_bytes_in_use"])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def table(records: list[Record]) -> str:
    """Error, memory and time of each run."""
    header = ["model", "rows", "device", "rows in", "worst mean, sd", "sds, times"]
    header += ["verdict", "data, GB", "may use, GB", "before, GB", "peak, GB"]
    header += ["wall, s", "CPU, s"]
    rows = [
        [
            r["model"],
            f"{r['rows']:.1e}".replace(".0e", "e").replace("e+0", "e"),
            r["backend"],
            r.get("place", "memory"),
            f"{r['mean_error']:.3f}",
            "{:.3f} to {:.3f}".format(*r["sd_ratios"]),
            r["level"],
            f"{r['data_bytes'] / 1e9:.2f}",
            f"{r['memory_bytes'] / 1e9:.2f}" if r.get("memory_bytes") else "",
            f"{r['peak_bytes_before'] / 1e9:.2f}",
            f"{r['peak_bytes'] / 1e9:.2f}",
            f"{r['seconds']:.0f}" if r["backend"] != "cpu" else "",
            f"{r['seconds_cpu']:.0f}" if "seconds_cpu" in r else "",
        ]
        for r in sorted(records, key=lambda r: (r["backend"], r["model"], r["rows"]))
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
        place: Where the rows are, in memory or in files.
        thousandths: Of a device's memory that may be used; as many as JAX takes if 0.
        megabytes: Of rows of files that may be kept; as many as by default if 0.

    Example:
        >>> len(Study(["linear", "logistic"], [1000]).tasks())
        2
    """

    name = "rows"
    worker = "softcvi_experiments.rows:measure"
    identity = (
        "model", "rows", "steps", "backend", "place", "thousandths", "megabytes",
    )  # fmt: skip
    fresh = True
    timeout = 7200.0
    timed = True

    models: Sequence[str] = choices(MODELS, ("linear",))
    rows: Sequence[int] = (1_000_000,)
    steps: int = 10_000
    backend: str = choices(PLATFORMS, "cpu")
    place: str = choices(_PLACES, "memory")
    thousandths: int = 0
    megabytes: int = 0

    def tasks(self) -> list[Task]:
        """Each model with each number of rows."""
        fixed = {"steps": self.steps, "backend": self.backend, "place": self.place}
        fixed |= {"thousandths": self.thousandths, "megabytes": self.megabytes}
        return [
            {"model": model, "rows": rows, **fixed}
            for model in self.models
            for rows in self.rows
        ]

    def environment(self, out: Path) -> dict[str, str]:
        """As for others, on the backend."""
        env = super().environment(out) | {"JAX_PLATFORMS": PLATFORMS[self.backend]}
        if not self.thousandths:
            return env
        return env | {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{self.thousandths / 1000}"}

    def kind(self, task: Task) -> tuple:
        """Each case by itself: the peak of memory is that of a process."""
        return self.case_of(task)

    def page(self, records: list[Record]) -> str:
        """The table."""
        return f"# Many rows\n\n{table(answered(records))}\n"


if __name__ == "__main__":
    command(Study, __doc__)
