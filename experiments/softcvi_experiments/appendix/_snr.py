"""Signal, noise and signal-to-noise ratio of the gradients on the toy normal."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi.diagnostics import GradientStatistics, gradient_snr
from softcvi.objectives import AbstractObjective
from softcvi.sweeps import RecordStore
from softcvi_experiments._figures import save_figure
from softcvi_experiments._methods import get_objective
from softcvi_experiments._reproduce import Reproduction
from softcvi_experiments.appendix._snr_figure import snr_figure
from softcvi_experiments.appendix._toy_normal import (
    TRUE_LOG_SD,
    TRUE_MEAN,
    toy_normal_guide,
    toy_normal_target,
)

SNR_METHODS = ("softcvi-0", "softcvi-0.75", "softcvi-1", "snis-fkl")
SNR_DIMENSIONS = (1, 50)
ParameterName = Literal["mean", "log_sd"]
PARAMETERS: tuple[ParameterName, ...] = ("mean", "log_sd")
_REACH = 3.0
_AT_ONCE = 8


def snr_values(parameter: ParameterName, num_values: int) -> Float[Array, " n"]:
    """The values of a parameter at which gradients are looked at.

    Args:
        parameter: ``"mean"`` or ``"log_sd"``.
        num_values: How many, evenly spaced within 3 of the truth.

    Example:
        >>> [round(float(value), 1) for value in snr_values("mean", 3)]
        [-2.2, 0.8, 3.8]
    """
    truth = TRUE_MEAN if parameter == "mean" else TRUE_LOG_SD
    return truth + jnp.linspace(-_REACH, _REACH, num_values)


def snr_curve(
    key: PRNGKeyArray,
    objective: AbstractObjective,
    dim: int,
    parameter: ParameterName,
    values: Float[Array, " n"],
    num_gradients: int,
) -> dict[str, Float[Array, " n"]]:
    """Statistics of the gradient in one parameter, the other held at the truth.

    Statistics are taken in every dimension and then averaged.

    Args:
        key: Random key.
        objective: The objective.
        dim: Number of dimensions of the toy normal.
        parameter: ``"mean"`` or ``"log_sd"``.
        values: Values of that parameter.
        num_gradients: Independent gradients at each value.

    Example:
        >>> curve = snr_curve(
        ...     jr.key(0), get_objective("softcvi-1"), 1, "mean", jnp.zeros(2), 10
        ... )
        >>> sorted(curve), curve["noise"].shape
        (['noise', 'ratio', 'signal'], (2,))
    """
    keys = jr.split(key, len(values))
    place = {"mean": TRUE_MEAN, "log_sd": TRUE_LOG_SD, parameter: values}
    points = [jnp.broadcast_to(place[name], values.shape) for name in PARAMETERS]
    # Numbers become arrays, so that one program serves all alphas and parameters.
    objective = jax.tree_util.tree_map(jnp.asarray, objective)
    found = _statistics(keys, *points, objective, dim, num_gradients)
    field = "loc" if parameter == "mean" else "log_sd"
    return {
        name: jnp.mean(getattr(getattr(found, name).distribution, field), axis=1)
        for name in ("signal", "noise", "ratio")
    }


@eqx.filter_jit
def _statistics(
    keys: PRNGKeyArray,
    means: Float[Array, " n"],
    log_sds: Float[Array, " n"],
    objective: AbstractObjective,
    dim: int,
    num_gradients: int,
) -> GradientStatistics:
    target = toy_normal_target(dim)

    def at(point: tuple[PRNGKeyArray, Array, Array]) -> GradientStatistics:
        key, mean, log_sd = point
        guide = toy_normal_guide(dim, mean, log_sd)
        return gradient_snr(key, objective, guide, target, num_gradients)

    together = max(n for n in range(1, _AT_ONCE + 1) if len(means) % n == 0)
    return jax.lax.map(at, (keys, means, log_sds), batch_size=together)


def reproduce_snr(
    out: str | Path,
    *,
    num_values: int = 200,
    num_gradients: int = 5_000,
    methods: Sequence[str] = SNR_METHODS,
    dimensions: Sequence[int] = SNR_DIMENSIONS,
    seed: int = 0,
    say: Callable[[str], None] = lambda line: None,
) -> Reproduction:
    """Compute all curves, and draw the paper's figure.

    Writes ``records.jsonl`` and ``snr.png``, ``.svg``, ``.pdf``. Curves that are on
    record are not computed again.

    Args:
        out: Output folder.
        num_values: Values of each parameter.
        num_gradients: Gradients at each value.
        methods: Method names.
        dimensions: Dimensions of the toy normal.
        seed: Seed.
        say: Told a line on each curve.

    Example:
        >>> import tempfile
        >>> result = reproduce_snr(
        ...     tempfile.mkdtemp(), num_values=3, num_gradients=5, dimensions=[1],
        ...     methods=["softcvi-1"],
        ... )
        >>> [record["parameter"] for record in result.records]
        ['mean', 'log_sd']
    """
    records = RecordStore(out)
    rows: list[dict[str, Any]] = []
    for dim in dimensions:
        for parameter in PARAMETERS:
            values = snr_values(parameter, num_values)
            for method in methods:
                identity = {
                    "experiment": "snr",
                    "dim": dim,
                    "parameter": parameter,
                    "method": method,
                    "num_values": num_values,
                    "num_gradients": num_gradients,
                    "seed": seed,
                    "run": 0,
                }
                if not records.find(identity):
                    curve = snr_curve(
                        jr.key(seed),
                        get_objective(method),
                        dim,
                        parameter,
                        values,
                        num_gradients,
                    )
                    curve = {name: _rounded(line) for name, line in curve.items()}
                    records.add([{**identity, "values": _rounded(values), **curve}])
                rows += records.find(identity)
                say(f"d = {dim}, {parameter}, {method}")
    return Reproduction(
        rows, "", [records.path, *save_figure(snr_figure(rows), out, "snr")]
    )


def _rounded(values: Array) -> list[float]:
    return [float(f"{float(value):.5g}") for value in values]
