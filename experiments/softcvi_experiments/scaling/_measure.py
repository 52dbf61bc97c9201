"""What a step takes: CPU seconds, bytes, and bytes that devices exchange."""

import re
import resource
import time
from collections.abc import Callable

import jax

import softcvi
from softcvi.guides import mean_field
from softcvi_experiments.scaling._costs import Case
from softcvi_experiments.scaling._programs import (
    logistic_rows,
    objective,
    ours,
    problem,
    program,
    rows_target,
)
from softcvi_experiments.store import Record

_SHORT, _GROWTH, _MOST = 2, 6, 200_000
_ENOUGH_SECONDS = 0.1
_FLOAT_BYTES = {"f32": 4, "f64": 8, "s32": 4, "u32": 4, "pred": 1}


def measure(
    part: str,
    way: str,
    guide: str,
    particles: int,
    dimension: int,
    rows: int,
    groups: int,
    devices: int,
) -> Record:
    """The worker of the study: one case.

    Args:
        part: ``"exchange"``, ``"load"``, ``"whole"``, or one whose steps are timed.
        way: Who computes it.
        guide: Family of the guide.
        particles: K.
        dimension: Number of parameters.
        rows: Rows of the data.
        groups: Groups of a hierarchy.
        devices: Devices of the host that rows are spread over.

    Example:
        >>> found = measure("dimension", "SoftCVI", "mean-field", 4, 3, 0, 0, 1)
        >>> found["seconds_per_step"] > 0, found["temporary_bytes"] > 0
        (True, True)
    """
    case = Case(guide, particles, dimension, rows, groups)
    asked = {"part": part, "way": way, "guide": guide, "particles": particles}
    asked |= {"dimension": dimension, "rows": rows, "groups": groups}
    asked |= {"devices": devices}
    if part == "exchange":
        return asked | _exchange(way, case, devices)
    if part == "load":
        return asked | _load(case, devices)
    if part == "whole":
        return asked | _whole(way, case)
    made = program(way, case)
    memory = made.compiled().memory_analysis()
    return asked | {
        "seconds_per_step": seconds_per_step(made.run),
        "temporary_bytes": int(memory.temp_size_in_bytes),
        "argument_bytes": int(memory.argument_size_in_bytes),
    }


def seconds_per_step(run: Callable[[int], object]) -> float:
    """CPU time of a step: a long run less a short one, over the steps in between.

    Args:
        run: Runs so many steps.

    Example:
        >>> def run(steps):
        ...     end = time.process_time() + 1e-3 * steps
        ...     while time.process_time() < end:
        ...         pass
        >>> 0.9e-3 < seconds_per_step(run) < 1.5e-3
        True
    """
    run(_SHORT)  # compiles
    short = min(_seconds(run, _SHORT) for _ in range(2))
    steps = _SHORT * _GROWTH
    while (long := _seconds(run, steps)) - short < _ENOUGH_SECONDS and steps < _MOST:
        steps *= _GROWTH
    # The smaller of two: other work on the machine empties the caches.
    long = min(long, _seconds(run, steps))
    return (long - short) / (steps - _SHORT)


def _seconds(run: Callable[[int], object], steps: int) -> float:
    began = time.process_time()
    run(steps)
    return time.process_time() - began


def exchanges(text: str) -> dict[str, int]:
    r"""Collective operations of a compiled program and the bytes that they reduce.

    Args:
        text: The program as XLA prints it.

    Example:
        >>> exchanges("ENTRY %main {\n  %a = (f32[8]{0}, f32[8]{0}) all-reduce(%b)\n}")
        {'outside_loops': 1, 'inside_loops': 0, 'bytes': 64}
    """
    found = {"outside_loops": 0, "inside_loops": 0, "bytes": 0}
    is_entry = False
    names = r"all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute"
    for line in text.splitlines():
        if line.rstrip().endswith("{") and not line.startswith(" "):
            is_entry = line.startswith("ENTRY")
        match = re.search(rf"= (.*?) (?:{names})(?:-start)?\(", line)
        if match is None:
            continue
        found["outside_loops" if is_entry else "inside_loops"] += 1
        for kind, shape in re.findall(r"(\w+)\[([\d,]*)\]", match[1]):
            size = _FLOAT_BYTES[kind]
            for length in filter(None, shape.split(",")):
                size *= int(length)
            found["bytes"] += size
    return found


def _exchange(way: str, case: Case, devices: int) -> Record:
    where = _host_devices(devices)
    target = rows_target(logistic_rows(case.rows, case.dimension), where)
    compiled = ours(target, mean_field(target), objective(way, case)).compiled()
    memory = compiled.memory_analysis()
    return {
        **exchanges(compiled.as_text()),
        "argument_bytes": int(memory.argument_size_in_bytes),
    }


def _load(case: Case, devices: int) -> Record:
    """CPU time of handing rows to devices, their checksum included."""
    where = _host_devices(devices)
    data = logistic_rows(case.rows, case.dimension)

    def place(_: int) -> None:
        jax.block_until_ready(rows_target(data, where).rows.data)

    place(0)
    seconds = min(_seconds(place, 0) for _ in range(2))
    return {"seconds": seconds, "bytes": sum(part.nbytes for part in data)}


def _whole(way: str, case: Case) -> Record:
    """Peak memory of a whole fit of few steps, its own check of the end included."""
    target, guide = problem(case)
    before = _peak_bytes()
    softcvi.fit(
        jax.random.key(0), target, guide, objective=objective(way, case), steps=2,
        start=None, progress=False,
    )  # fmt: skip
    return {"bytes": _peak_bytes() - before}


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _host_devices(count: int) -> list[jax.Device]:
    """Devices of the host, which a process has only if it asks before its first use."""
    if count > 1:
        jax.config.update("jax_num_cpu_devices", count)
    return jax.devices()[:count]
