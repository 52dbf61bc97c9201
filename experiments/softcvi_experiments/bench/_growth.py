"""``--suite growth``: cost against everything that can grow, and peak memory."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import softcvi
from softcvi.fitting import paper_optimizer
from softcvi.guides import low_rank, mean_field, spline_flow
from softcvi_experiments.bench._growth_large import (
    DIMENSIONS,
    GROUPS,
    dimension_ways,
    group_ways,
)
from softcvi_experiments.bench._memory import measure_memory
from softcvi_experiments.bench._options import Options
from softcvi_experiments.bench._overhead import paper_problem
from softcvi_experiments.bench._store import Result
from softcvi_experiments.bench._timing import measuring, seconds_of
from softcvi_experiments.tasks import linear_regression_log_prob

PARTS = (
    "particles", "dimension", "large", "groups", "depth", "fits", "data", "memory",
)  # fmt: skip
_PROBE_STEPS = 16
_RANK = 10
_COVARIATES = 10


def bench_growth(options: Options) -> list[Path]:
    """Microseconds per step against K, dimension, depth, fits and data; peak memory.

    Args:
        options: Settings of the run.

    Returns:
        The files written: result, table and plot.

    Example:
        >>> bench_growth(Options(Path("bench"), parts=("speed",)))
        Traceback (most recent call last):
        ...
        ValueError: parts: this suite has no 'speed'; it has ...
    """
    options.check_parts(PARTS)
    result = Result("growth", options)
    with measuring():
        for part, measure in _MEASURES.items():
            if options.wants(part):
                result.add(part, measure(options))
        if options.wants("memory"):
            result.add("memory", measure_memory(options))
    return result.finish()


def slope(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Slope of log cost on log size over the larger half, where the arithmetic shows.

    Args:
        sizes: What grows.
        costs: What it costs.

    Example:
        >>> round(slope([1, 10, 100, 1000], [5.0, 5.0, 50.0, 500.0]), 3)
        1.0
    """
    keep = max(2, (len(sizes) + 1) // 2)
    x, y = np.log(sizes[-keep:]), np.log(costs[-keep:])
    return float(np.polyfit(x, y, 1)[0])


def _curve(
    what: str,
    label: str,
    sizes: Sequence[int],
    make: Callable[[int], Callable[[int], float]],
    options: Options,
) -> dict[str, Any]:
    """Cost of a step at every size; ``make(size)`` returns seconds of so many steps."""
    sizes = sizes[:2] if options.quick else sizes
    costs = []
    for size in sizes:
        run = make(size)
        run(_PROBE_STEPS)
        rate = max(run(_PROBE_STEPS), 1e-6) / _PROBE_STEPS
        goal = 0.005 if options.quick else 0.3
        steps = int(np.clip(goal / rate, _PROBE_STEPS, 20_000))
        repeats = 1 if options.quick else min(3, options.repeats)
        seconds = np.median([run(steps) for _ in range(repeats)])
        costs.append(1e6 * float(seconds) / steps)
        options.say(f"{what}, {label}, {size}: {costs[-1]:.1f} us per step")
    return {
        "label": label,
        "sizes": list(sizes),
        "us_a_step": costs,
        "slope": slope(sizes, costs),
        "slope_arithmetic": 1.0,
    }


def _fit(target, guide, num_particles: int = 8) -> Callable[[int], float]:
    objective = softcvi.SoftCVI(num_particles)

    def run(steps: int) -> float:
        return softcvi.fit(
            jax.random.key(0), target, guide, objective=objective, steps=steps,
            optimizer=paper_optimizer(1e-3), start=None, progress=False,
        ).seconds_run  # fmt: skip

    return run


def _particles(options: Options) -> list[dict[str, Any]]:
    sizes = [2, 8, 32, 128, 512]

    def make(name: str) -> Callable[[int], Callable[[int], float]]:
        target, guide, _ = paper_problem(name)
        return lambda size: _fit(target, guide, size)

    names = ("linear_regression",) if options.quick else ("linear_regression", "slcp")
    labels = {"linear_regression": "linear regression", "slcp": "SLCP, flow"}
    return [_curve("K", labels[n], sizes, make(n), options) for n in names]


def _normal(x: jax.Array) -> jax.Array:
    return -0.5 * jnp.sum(x**2)


def _dimension(options: Options) -> list[dict[str, Any]]:
    sizes = [10, 50, 200, 1_000, 2_000]

    def make_mean_field(size: int):
        target = softcvi.DensityTarget(_normal, jnp.zeros(size))
        return _fit(target, mean_field(target))

    def make_low_rank(size: int):
        target = softcvi.DensityTarget(_normal, jnp.zeros(size))
        return _fit(target, low_rank(target, rank=_RANK))

    ways = {"mean-field": make_mean_field, f"low-rank, rank {_RANK}": make_low_rank}
    return [_curve("dimension", n, sizes, make, options) for n, make in ways.items()]


def _large(options: Options) -> list[dict[str, Any]]:
    ways = dimension_ways().items()
    return [_curve("large", n, DIMENSIONS, make, options) for n, make in ways]


def _groups(options: Options) -> list[dict[str, Any]]:
    ways = group_ways().items()
    return [_curve("groups", n, GROUPS, make, options) for n, make in ways]


def _depth(options: Options) -> list[dict[str, Any]]:
    def make(layers: int):
        target = softcvi.DensityTarget(_normal, jnp.zeros(5))
        return _fit(target, spline_flow(target, key=jax.random.key(0), layers=layers))

    return [_curve("depth", "spline flow, 5 parameters", [1, 2, 4, 8], make, options)]


def _fits(options: Options) -> list[dict[str, Any]]:
    def make(name: str):
        target, guide, optimizer = paper_problem(name)

        def sized(size: int):
            keys = jax.random.split(jax.random.key(0), size)
            return lambda steps: softcvi.fit_many(
                keys, target, guide, steps=steps, optimizer=optimizer, start=None,
                progress=False,
            )[0].seconds_run  # fmt: skip

        return sized

    names = ("eight_schools",) if options.quick else ("eight_schools", "slcp")
    sizes = [1, 4, 16, 64, 256]
    labels = {"eight_schools": "eight schools", "slcp": "SLCP, flow"}
    return [_curve("fits", labels[n], sizes, make(n), options) for n in names]


def _data(options: Options) -> list[dict[str, Any]]:
    def target_of(size: int):
        x_key, y_key = jax.random.split(jax.random.key(0))
        observed = {
            "x": jax.random.normal(x_key, (size, _COVARIATES)),
            "y": jax.random.normal(y_key, (size,)),
        }
        return softcvi.DensityTarget(
            linear_regression_log_prob,
            {"beta": jnp.zeros(_COVARIATES), "mu": jnp.zeros(())},
            observed=observed,
        )

    def make(size: int):
        target = target_of(size)
        return _fit(target, mean_field(target))

    label = f"linear regression, {_COVARIATES} covariates"
    sizes = [100, 1_000, 10_000, 100_000, 1_000_000]
    ways = {label: make, "its density alone": lambda size: _density(target_of(size))}
    return [_curve("data", n, sizes, way, options) for n, way in ways.items()]


def _density(target, num_particles: int = 8) -> Callable[[int], float]:
    """The model's own arithmetic: the density of K particles that keep moving."""

    @eqx.filter_jit
    def loop(particles, target, steps):
        def body(_, particles):
            log_p = jax.vmap(target.log_density)(particles)
            return jax.tree_util.tree_map(
                lambda x: x + 1e-9 * jnp.tanh(log_p.reshape(-1, *[1] * (x.ndim - 1))),
                particles,
            )

        return jax.lax.fori_loop(0, steps, body, particles)

    particles = jax.tree_util.tree_map(
        lambda x: jnp.zeros((num_particles, *x.shape), x.dtype), target.structure.like
    )

    def run(steps: int) -> float:
        length = jnp.asarray(steps, jnp.int32)
        return seconds_of(
            lambda: jax.block_until_ready(loop(particles, target, length))
        )

    return run


_MEASURES: dict[str, Callable[[Options], list[dict[str, Any]]]] = {
    "particles": _particles,
    "dimension": _dimension,
    "large": _large,
    "groups": _groups,
    "depth": _depth,
    "fits": _fits,
    "data": _data,
}
