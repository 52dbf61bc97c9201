"""Programs that are killed: each goes on when it is run again in the same folder."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import softcvi
from softcvi.cli import main
from softcvi.fitting import Checkpoint
from softcvi.ladder import Flow, Simple
from softcvi.sweeps import Grid, RecordStore, sweep
from softcvi.targets import AbstractTarget
from softcvi_experiments._run import run_piece
from softcvi_experiments._settings import Settings
from softcvi_experiments.references import get_source

_MODEL = """import jax.numpy as jnp

like = {"a": jnp.zeros(2), "b": jnp.zeros(())}


def log_prob(theta):
    a, b = theta["a"], theta["b"]
    return -0.5 * jnp.sum((a - 1.0) ** 2) - 0.5 * (b - a[0]) ** 2
"""
_RUNS = 3
# Parts of a record that differ between equal runs, beside its times.
_OWN = {"made"}


class Program(NamedTuple):
    """Something that writes to a folder.

    Attributes:
        run: Runs it, or goes on with it; returns an exit code.
        answer: What it has found, by name: equal for equal answers.
    """

    run: Callable[[Path], int]
    answer: Callable[[Path], dict[str, str]]


def _fit(out: Path, *options: str) -> int:
    model = out.parent / f"{out.name}.py"
    model.write_text(_MODEL)
    found = (out / "checkpoint.npz").exists() or (out / "result.json").exists()
    again = ["--resume"] if found else []
    return main(
        ["fit", f"{model}:log_prob", "--out", str(out), "--quiet", *options, *again]
    )


def _run_fit(out: Path) -> int:
    return _fit(out, "--guide", "mean-field", "--steps", "60000")


def _run_until(out: Path) -> int:
    # A k-hat that no guide reaches here: every rung is tried.
    answer = softcvi.fit_until(
        jax.random.key(0),
        _skewed(),
        1e-6,
        rungs=(Simple(), Flow("flow", 1, 8)),
        steps=1000,
        progress=False,
        checkpoint=Checkpoint(out / "until.checkpoint", every=0.0),
    )
    for i, attempt in enumerate(answer.attempts):
        if attempt.answer is None:
            return 1
        attempt.answer.posterior.save(out / f"{i}.softcvi")
    return 0


def _until(folder: Path) -> dict[str, str]:
    return {path.name: _posterior(path) for path in sorted(folder.glob("*.softcvi"))}


def _draws(folder: Path) -> dict[str, str]:
    record = json.loads((folder / "result.json").read_text())
    return {
        "draws.csv": _digest((folder / "draws.csv").read_bytes()),
        "posterior": _posterior(folder / "posterior.softcvi"),
        "status": record["status"],
    }


def _posterior(path: Path) -> str:
    draws = softcvi.load(path).sample(jax.random.key(0), 100)
    return _digest(b"".join(np.asarray(draws[name]).tobytes() for name in draws))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _target() -> AbstractTarget:
    def log_prob(x: jax.Array) -> jax.Array:
        return -0.5 * jnp.sum((x - 1.0) ** 2)

    return softcvi.DensityTarget(log_prob, jnp.zeros(3))


def _skewed() -> AbstractTarget:
    def log_prob(x: jax.Array) -> jax.Array:
        return jnp.sum(4.0 * x - jnp.exp(x)) - 0.5 * (x[0] - x[1] ** 2) ** 2

    return softcvi.DensityTarget(log_prob, jnp.zeros(2))


def load_normal(model: str, data: str | None) -> AbstractTarget:
    """The models of a sweep, which its workers import by name.

    Args:
        model: Ignored; there is one.
        data: None.
    """
    return _target()


def _run_many(out: Path) -> int:
    target = _target()
    results = softcvi.fit_many(
        jax.random.split(jax.random.key(0), _RUNS),
        target,
        softcvi.guides.mean_field(target),
        steps=20_000,
        progress=False,
        checkpoint=Checkpoint(out / "many.checkpoint", every=0.0),
    )
    for i, result in enumerate(results):
        result.posterior.save(out / f"{i}.softcvi")
    return 0


def _many(folder: Path) -> dict[str, str]:
    return {str(i): _posterior(folder / f"{i}.softcvi") for i in range(_RUNS)}


def _run_reproduce(out: Path) -> int:
    records, source = RecordStore(out), get_source("builtin")
    settings = Settings(steps=500)
    for method in ("softcvi-0.75", "elbo"):
        run_piece(
            "linear_regression", method, 2, settings, source, records, progress=False
        )
    return 0


def _run_sweep(out: Path) -> int:
    grid = Grid(
        ("normal",), guides=("mean-field", "full-rank"), seeds=range(3), steps=2000
    )
    result = sweep(grid, load_normal, out, progress=False)
    return int(result.num_failed > 0)


def _of_records(records: list[dict[str, Any]]) -> dict[str, str]:
    """One entry per configuration; a second record of one is an entry of its own."""
    found: dict[str, str] = {}
    for record in records:
        rest = _plain(record)
        name = str(record.get("id") or [record.get(k) for k in ("method", "run")])
        while name in found:
            name += ", again"
        found[name] = _digest(json.dumps(rest, sort_keys=True).encode())
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {k: v for k, v in value.items() if k not in _OWN}
        return {k: _plain(v) for k, v in kept.items() if not k.startswith("seconds")}
    return [_plain(v) for v in value] if isinstance(value, list) else value


PROGRAMS: dict[str, Program] = {
    "fit": Program(_run_fit, _draws),
    "fit_until": Program(_run_until, _until),
    "fit_many": Program(_run_many, _many),
    "reproduce": Program(_run_reproduce, lambda at: _of_records(RecordStore(at).all())),
    "sweep": Program(_run_sweep, lambda at: _of_records(RecordStore(at).all())),
}
