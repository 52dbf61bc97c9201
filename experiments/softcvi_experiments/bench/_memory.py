"""Peak memory of long histories and of many particles, each in its own process."""

import resource
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import softcvi
from softcvi_experiments.bench._child import run_child
from softcvi_experiments.bench._options import Options
from softcvi_experiments.bench._overhead import paper_problem

_MIB = 2**20
# A history has 512 rows whatever the number of steps; this is room for noise.
HISTORY_BOUND_MIB = 32.0
# What is returned, with room for one piece and the weights' sort.
PARTICLES_BOUND = 1.5


def use_memory(what: str, size: int) -> dict[str, Any]:
    """Do something that needs memory and report the peak of this process.

    Args:
        what: ``"history"`` (a fit of so many steps) or ``"particles"`` (importance
            weights of so many draws of 51 parameters).
        size: Steps or draws.
    """
    if what == "history":
        target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(1))
        guide = softcvi.guides.mean_field(target)
        result = softcvi.fit(
            jax.random.key(0), target, guide, objective=softcvi.SoftCVI(2),
            steps=size, start=None, progress=False,
        )  # fmt: skip
        history = result.history
        returned = sum(
            getattr(history, name).nbytes
            for name in ("step", "excess", "label_ess", "elbo")
        )
    else:
        target, guide, _ = paper_problem("linear_regression")
        sample = softcvi.Posterior(guide, target).importance(jax.random.key(0), size)
        leaves = jax.tree_util.tree_leaves((sample.draws, sample.particles))
        arrays = [*leaves, sample.log_p, sample.log_q, sample.log_weights]
        returned = sum(array.nbytes for array in arrays)
    stats = jax.devices()[0].memory_stats() or {}
    device = stats.get("peak_bytes_in_use")
    return {
        "peak_mib": _peak_bytes() / _MIB,
        "device_peak_mib": None if device is None else device / _MIB,
        "returned_mib": returned / _MIB,
    }


def _peak_bytes() -> int:
    try:
        # Linux hands the peak of the parent on to getrusage of the child; not this one.
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(s.split()[1]) for s in lines if s.startswith("VmHWM"))
    except (OSError, StopIteration):
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def measure_memory(options: Options) -> list[dict[str, Any]]:
    """Growth of peak memory from a small to a large size, beside the stated bound.

    Args:
        options: Settings of the run.
    """
    sizes = {"history": (1_000, 1_000_000), "particles": (16_384, 1_000_000)}
    if options.quick:
        sizes = {"history": (10, 100), "particles": (100, 200)}
    rows = []
    for what, (small, large) in sizes.items():
        before, after = (run_child("memory", what, size) for size in (small, large))
        growth = after["peak_mib"] - before["peak_mib"]
        bound = HISTORY_BOUND_MIB
        if what == "particles":
            bound = PARTICLES_BOUND * after["returned_mib"]
        rows.append(
            {
                "what": what, "small": small, "large": large, "growth_mib": growth,
                "returned_mib": after["returned_mib"], "bound_mib": bound,
                "peak_mib": after["peak_mib"],
                "device_peak_mib": after["device_peak_mib"],
            }
        )  # fmt: skip
        options.say(f"memory, {what}: {growth:.0f} MiB, bound {bound:.0f} MiB")
    return rows
