"""Long runs: memory over many steps, and one fit in many pieces."""

import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import softcvi
from softcvi.fitting import AbstractReporter, AbstractStoppingRule, Checkpoint

_PAGE = os.sysconf("SC_PAGE_SIZE")
# Growth between the first fifth of a run and its end that counts as none.
_FLAT_MIB = 16.0


class _Memory(AbstractReporter):
    """Notes the memory of the process at every report."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.mib: list[float] = []

    def begin(self, description: str, total: int) -> None:
        pass

    def update(self, step: int, rate: float, numbers: dict[str, float]) -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.steps.append(step)
        self.mib.append(pages * _PAGE / 2**20)

    def end(self) -> None:
        pass


class _Pause(AbstractStoppingRule):
    """Stops at the first opportunity after a number of steps."""

    step: int
    follows_clock = True

    def reason(self, progress: softcvi.fitting.Progress) -> str | None:
        return "a pause" if progress.step >= self.step else None


def _target() -> softcvi.DensityTarget:
    return softcvi.DensityTarget(lambda x: -0.5 * jnp.sum((x - 1.0) ** 2), jnp.zeros(3))


def long_run(task: dict[str, Any]) -> dict[str, Any]:
    """One of the two.

    Args:
        task: ``case``, ``"steps"`` or ``"resumes"``, its ``count`` and ``folder``.
    """
    return {**task, **_CASES[task["case"]](task["count"], Path(task["folder"]))}


def _steps(count: int, folder: Path) -> dict[str, Any]:
    target, memory = _target(), _Memory()
    guide = softcvi.guides.mean_field(target)
    result = softcvi.fit(
        jax.random.key(0), target, guide, steps=count, start=None, progress=memory
    )
    steps, mib = np.array(memory.steps), np.array(memory.mib)
    late = steps >= 0.2 * count
    slope = np.polyfit(steps[late], mib[late], 1)[0] * 1e6 if late.sum() > 2 else 0.0
    grown = float(mib[-1] - mib[late][0])
    return {
        "ok": result.status == "finished" and grown < _FLAT_MIB,
        "mib": round(float(mib[-1]), 1),
        "grown_mib": round(grown, 2),
        "mib_per_million_steps": round(float(slope), 2),
        "seconds": round(result.seconds_run, 1),
    }


def _resumes(count: int, folder: Path) -> dict[str, Any]:
    target, total = _target(), 100 * count
    guide, key = softcvi.guides.mean_field(target), jax.random.key(0)
    path = folder / "resumed.checkpoint"
    path.unlink(missing_ok=True)
    calls, steps = 0, 0
    while steps < total:
        result = softcvi.fit(
            key,
            target,
            guide,
            steps=total,
            start=None,
            progress=False,
            stopping=_Pause(steps + 1) if calls < count else None,
            checkpoint=Checkpoint(path, every=0.0),
        )
        calls, steps = calls + 1, result.steps
    whole = softcvi.fit(key, target, guide, steps=total, start=None, progress=False)
    pairs = zip(*map(_leaves, (result, whole)), strict=True)
    is_equal = all(np.array_equal(a, b) for a, b in pairs)
    return {"ok": is_equal and calls >= count, "equal": is_equal, "calls": calls}


def _leaves(result: softcvi.FitResult) -> list[np.ndarray]:
    arrays = jax.tree_util.tree_leaves(result.posterior.guide)
    curves = vars(result.history).values()
    return [np.asarray(x) for x in (*arrays, *curves) if hasattr(x, "shape")]


_CASES = {"steps": _steps, "resumes": _resumes}
