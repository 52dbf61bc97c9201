"""Stan models: log densities from compiled code, with names and constrained values."""

import asyncio
import json
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from softcvi.adapters._callable import CallbackTarget, from_callable
from softcvi.adapters._extras import require
from softcvi.adapters.stan._process import StanProcess
from softcvi.targets import AbstractSpace, AbstractTarget, ModelSpace, Structure

_THETA = "theta"


class StanTarget(AbstractTarget):
    """The posterior of a Stan model; made by ``from_bridgestan`` or ``from_pystan``.

    The fit happens on Stan's unconstrained vector; draws come back by name in the
    model's own coordinates, transformed parameters included.

    Attributes:
        density: The log density of the unconstrained vector.
        constrain: Function from rows of unconstrained parameters to rows of all values,
            on the host.
        shapes: Name and shape of every variable, in the order of ``constrain``.

    Example:
        >>> import numpy as np
        >>> from softcvi.adapters import from_bridgestan
        >>> class Model:  # stands for a bridgestan.StanModel
        ...     def param_unc_num(self):
        ...         return 1
        ...
        ...     def param_names(self, include_tp=False, include_gq=False):
        ...         return ["mu"]
        ...
        ...     def param_constrain(self, u, include_tp=False, include_gq=False):
        ...         return u
        ...
        ...     def log_density(self, u):
        ...         return float(-0.5 * u @ u)
        >>> from_bridgestan(Model()).shapes
        (('mu', ()),)
    """

    density: CallbackTarget
    constrain: Callable = eqx.field(static=True)
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = eqx.field(static=True)
    structure: Structure = eqx.field(static=True)
    space: AbstractSpace
    has_gradient: bool = eqx.field(static=True, default=False)

    def log_density(self, particle: dict, data: Any = None) -> Scalar:
        return self.density.log_density(particle)

    def describe(self, x: dict) -> dict[str, Array]:
        size = sum(int(np.prod(shape)) for _, shape in self.shapes)
        dtype = jnp.result_type(float)
        host = _Rows(self.constrain, size, np.dtype(dtype))
        out = jax.ShapeDtypeStruct((size,), dtype)
        flat = jax.pure_callback(host, out, x[_THETA], vmap_method="broadcast_all")
        values, start = {}, 0
        for name, shape in self.shapes:
            stop = start + int(np.prod(shape))
            # Stan lists matrices by column.
            values[name] = jnp.reshape(flat[start:stop], shape, order="F")
            start = stop
        return values


class _Rows:
    """Applies a function of rows to a batch with any axes in front."""

    def __init__(self, function: Callable, size: int, dtype: np.dtype):
        self.function = function
        self.size = size
        self.dtype = dtype

    def __call__(self, rows: Any) -> np.ndarray:
        rows = np.asarray(rows, np.float64)
        flat = rows.reshape(-1, rows.shape[-1])
        out = np.asarray(self.function(flat), self.dtype)
        return out.reshape(*rows.shape[:-1], self.size)


def from_bridgestan(model: Any) -> StanTarget:
    """The posterior of a BridgeStan model.

    Args:
        model: A ``bridgestan.StanModel`` (anything with its ``log_density``,
            ``param_unc_num``, ``param_names`` and ``param_constrain``).

    Returns:
        A target for ``softcvi.fit``; its log density is a callback to Stan's code.

    Example:
        >>> import numpy as np
        >>> from softcvi.adapters import from_bridgestan
        >>> class Model:  # stands for bridgestan.StanModel("model.stan", data)
        ...     def param_unc_num(self):
        ...         return 1
        ...     def param_names(self, **include):
        ...         return ["sigma"]
        ...     def log_density(self, theta_unc, propto=True, jacobian=True):
        ...         return float(-0.5 * np.exp(theta_unc[0]) ** 2 + theta_unc[0])
        ...     def param_constrain(self, theta_unc, **include):
        ...         return np.exp(theta_unc)
        >>> target = from_bridgestan(Model())
        >>> float(target.describe({"theta": np.zeros(1, np.float32)})["sigma"])
        1.0
    """
    size = int(model.param_unc_num())
    names = list(model.param_names(include_tp=True, include_gq=False))

    def constrain(rows: Float[np.ndarray, "n d"]) -> list:
        return [model.param_constrain(row, include_tp=True) for row in rows]

    def log_density(rows: Float[np.ndarray, "n d"]) -> list[float]:
        return [_unless_rejected(model, row) for row in rows]

    return _target(log_density, constrain, _shapes(names), size)


def _unless_rejected(model: Any, row: Float[np.ndarray, " d"]) -> float:
    try:
        return model.log_density(row, propto=True, jacobian=True)
    except RuntimeError:
        # BridgeStan raises where Stan rejects a point: there is no density there.
        return -np.inf


def from_pystan(
    program: Any, data: dict[str, Any] | None = None, *, optimize: bool = True
) -> StanTarget:
    """The posterior of a Stan program, compiled by PyStan's own compiler.

    Args:
        program: A model from ``stan.build``, or the text of a Stan program, which
            is then compiled here (a minute or so, kept for the next time).
        data: Data of the program, if it is given as text.
        optimize: Let the C++ compiler optimise: slower to build, faster to run.

    Returns:
        A target for ``softcvi.fit``; its log density is a callback to Stan's code.

    Example:
        >>> from softcvi.adapters import from_pystan
        >>> code = "parameters { real mu; } model { mu ~ normal(3, 1); }"
        >>> target = from_pystan(code)  # doctest: +SKIP
        >>> target.structure  # doctest: +SKIP
        Structure(theta: (1,))
    """
    models = require("httpstan.models", "stan")
    if isinstance(program, str):
        name = models.calculate_model_name(program)
        data = _plain(data or {})
        _build(models, program, name, optimize)
    else:
        name, data = program.model_name, _plain(program.data)
    process = StanProcess(name, data)
    shapes = _computed(process.facts)
    return _target(process.log_prob, process.constrain, shapes, process.facts["size"])


def _target(
    log_density: Callable, constrain: Callable, shapes: list, size: int
) -> StanTarget:
    """A target from functions of rows of unconstrained parameters."""

    def on_particles(particles: dict) -> np.ndarray:
        return log_density(np.asarray(particles[_THETA], np.float64))

    density = from_callable(on_particles, {_THETA: jnp.zeros(size)}, vectorized=True)
    return StanTarget(
        density=density,
        constrain=constrain,
        shapes=tuple(shapes),
        structure=density.structure,
        space=ModelSpace(),
    )


def _build(models: Any, program: str, name: str, optimize: bool) -> None:
    try:
        models.import_services_extension_module(name)
    except KeyError:
        level = "-O3" if optimize else "-O0"
        args = [level, "-std=c++14", "-Wno-sign-compare", "-w"]
        # On a thread of its own: a notebook already runs an event loop on this one.
        with warnings.catch_warnings(), ThreadPoolExecutor(1) as pool:
            warnings.simplefilter("ignore")
            build = models.build_services_extension_module(program, args)
            try:
                pool.submit(asyncio.run, build).result()
            except ValueError as error:
                raise ValueError(
                    f"program: the Stan compiler refused it: {error}"
                ) from error


def _plain(data: Any) -> dict[str, Any]:
    """Data as JSON types, which is what httpstan's modules take."""

    def convert(value: Any) -> Any:
        return value.tolist() if hasattr(value, "tolist") else value

    return json.loads(json.dumps(dict(data), default=convert))


def _shapes(names: Sequence[str]) -> list[tuple[str, tuple[int, ...]]]:
    """Shapes from names such as ``theta.1.2``, the last index of each the largest."""
    shapes: dict[str, tuple[int, ...]] = {}
    for full in names:
        name, *index = full.split(".")
        shapes[name] = tuple(int(i) for i in index)
    return list(shapes.items())


def _computed(facts: dict[str, Any]) -> list[tuple[str, tuple[int, ...]]]:
    """Shapes without the generated quantities, which are listed last."""
    kept, count = [], 0
    for name, dims in zip(facts["names"], facts["dims"], strict=True):
        if count >= facts["total"]:
            break
        kept.append((name, tuple(dims)))
        count += int(np.prod(dims))
    return kept
