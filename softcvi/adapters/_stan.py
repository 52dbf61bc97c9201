"""Stan models: log densities from compiled code, with names and constrained values."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from softcvi.adapters._callable import CallbackTarget, from_callable
from softcvi.adapters._extras import require
from softcvi.targets import AbstractSpace, AbstractTarget, ModelSpace, Structure

_THETA = "theta"


class StanTarget(AbstractTarget):
    """The posterior of a Stan model; made by ``from_bridgestan`` or ``from_pystan``.

    The fit happens on Stan's unconstrained vector; draws come back by name in the
    model's own coordinates, transformed parameters included.

    Attributes:
        density: The log density of the unconstrained vector.
        constrain: Function from an unconstrained vector to all values, on the host.
        shapes: Name and shape of every variable, in the order of ``constrain``.
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
        host = _EachRow(self.constrain, size, np.dtype(dtype))
        out = jax.ShapeDtypeStruct((size,), dtype)
        flat = jax.pure_callback(host, out, x[_THETA], vmap_method="broadcast_all")
        values, start = {}, 0
        for name, shape in self.shapes:
            stop = start + int(np.prod(shape))
            # Stan lists matrices by column.
            values[name] = jnp.reshape(flat[start:stop], shape, order="F")
            start = stop
        return values


class _EachRow:
    """Applies a function of one vector to every row of a batch."""

    def __init__(self, function: Callable, size: int, dtype: np.dtype):
        self.function = function
        self.size = size
        self.dtype = dtype

    def __call__(self, rows: Any) -> np.ndarray:
        rows = np.asarray(rows, np.float64)
        flat = rows.reshape(-1, rows.shape[-1])
        out = np.array([self.function(row) for row in flat], self.dtype)
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

    def constrain(theta: Float[np.ndarray, " d"]) -> np.ndarray:
        return np.asarray(model.param_constrain(theta, include_tp=True))

    def log_density(theta: Float[np.ndarray, " d"]) -> float:
        return model.log_density(theta, propto=True, jacobian=True)

    return _target(log_density, constrain, _shapes(names), size)


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
    module = models.import_services_extension_module(name)
    names = module.get_param_names(data)
    dims = module.get_dims(data)
    shapes = [(n, tuple(d)) for n, d in zip(names, dims, strict=True)]
    size = _unconstrained_size(module, data)

    def log_density(theta: Float[np.ndarray, " d"]) -> float:
        return module.log_prob(data, theta.tolist(), True)

    def constrain(theta: Float[np.ndarray, " d"]) -> np.ndarray:
        return np.asarray(module.write_array(data, theta.tolist(), True, False))

    listed = module.constrained_param_names(data)
    total = len(constrain(np.zeros(size)))
    return _target(log_density, constrain, _cut(shapes, listed, total), size)


def _target(
    log_density: Callable, constrain: Callable, shapes, size: int
) -> StanTarget:
    def on_particle(particle: dict) -> float:
        try:
            return log_density(np.asarray(particle[_THETA], np.float64))
        except (RuntimeError, ValueError) as error:
            # Stan rejects a point by raising: the density is zero there.
            if "rejecting" in str(error).lower() or "Exception" in str(error):
                return -np.inf
            raise

    like = {_THETA: jnp.zeros(size)}
    density = from_callable(on_particle, like)
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
        try:
            asyncio.run(models.build_services_extension_module(program, args))
        except ValueError as error:
            raise ValueError(
                f"program: the Stan compiler refused it: {error}"
            ) from error


def _unconstrained_size(module: Any, data: dict) -> int:
    """Stan tells how many numbers it needs only by refusing the wrong number."""
    inits = module.write_array
    size = 0
    while True:
        try:
            module.log_prob(data, [0.0] * size, True)
            inits(data, [0.0] * size, False, False)
            return size
        except Exception:
            size += 1
            if size > 100_000:
                raise


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


def _cut(shapes: list, listed: Sequence[str], total: int) -> list:
    """Leave out generated quantities, which are listed last and not computed."""
    kept, count = [], 0
    for name, shape in shapes:
        if count >= total:
            break
        kept.append((name, shape))
        count += int(np.prod(shape))
    return kept
