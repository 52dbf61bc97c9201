"""One function per kind of model: from what a file defines to a target."""

import inspect
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from softcvi.cli._errors import CommandError
from softcvi.targets import AbstractTarget, DensityTarget

_LIKE = (
    "define `like` beside it in the file: one parameter point, such as "
    "like = {'x': jnp.zeros(3)}."
)


class Request(NamedTuple):
    """What a kind of model is made from."""

    module: ModuleType
    model: Any
    data: Mapping[str, Any]
    where: str
    source: str


def is_model(value: Any) -> bool:
    """Whether a value can be a model at all."""
    return callable(value) or _is_pymc_model(value) or isinstance(value, AbstractTarget)


def detect(module: ModuleType, model: Any) -> str:
    """Which kind a model is: the first rule that holds decides."""
    return next(kind for kind, holds in _RULES if holds(module, model))


def _uses(module: ModuleType, package: str) -> bool:
    """Whether a file imported a package, or names from it."""
    for value in vars(module).values():
        name = value.__name__ if inspect.ismodule(value) else None
        name = name or getattr(value, "__module__", None) or ""
        if isinstance(name, str) and name.split(".")[0] == package:
            return True
    return False


def _is_pymc_model(value: Any) -> bool:
    pymc = sys.modules.get("pymc")
    return pymc is not None and isinstance(value, pymc.Model)


def _from_numpyro(request: Request) -> AbstractTarget:
    from softcvi.adapters import from_numpyro

    module, model, data, where, source = request
    # A file that never imports NumPyro may well hold a density, known by its `like`.
    hint = "" if _uses(module, "numpyro") else f"\nIs it a log density? Then {_LIKE}"
    given = _as_jax(data, source)
    return from_numpyro(model, **_arguments(model, given, where, source, hint))


def _from_pymc(request: Request) -> AbstractTarget:
    from softcvi.adapters import from_pymc

    _, model, data, where, source = request
    if not _is_pymc_model(model):
        return from_pymc(model(**_arguments(model, data, where, source)))
    if data:
        _set_pymc_data(model, data, where, source)
    return from_pymc(model)


def _set_pymc_data(model, data, where, source) -> None:
    import pymc

    containers = [variable.name for variable in model.data_vars]
    unknown = sorted(set(data) - set(containers))
    if unknown:
        takes = f"only {', '.join(containers)} (pm.Data)" if containers else "no data"
        raise CommandError(
            f"{where}: is a PyMC model built already and takes {takes}; {source} has "
            f"{', '.join(unknown)}.\nRemove --data, or make it a function of the data "
            "that returns the model."
        )
    with model:
        pymc.set_data(dict(data))


def _from_density(request: Request) -> AbstractTarget:
    module, model, data, where, source = request
    beside = vars(module)
    if "like" not in beside:
        raise CommandError(f"{where}: read as a log density; {_LIKE}")
    takes_data = len(inspect.signature(model).parameters) > 1
    if data and not takes_data:
        raise CommandError(
            f"{where}: --data was given, but the density takes one argument. Let it "
            "take (parameters, data)."
        )
    if takes_data and not data:
        raise CommandError(f"{where}: the density takes data; give them by --data.")
    return DensityTarget(
        model,
        beside["like"],
        space=beside.get("space"),
        observed=_as_jax(data, source, scalars=True) if takes_data else None,
    )


def _from_target(request: Request) -> AbstractTarget:
    _, model, data, where, source = request
    made = model if isinstance(model, AbstractTarget) else None
    if made is None:
        made = model(**_arguments(model, _as_jax(data, source), where, source))
    elif data:
        raise CommandError(
            f"{where}: is a finished target and takes no data. Remove --data."
        )
    if not isinstance(made, AbstractTarget):
        raise CommandError(
            f"{where}: gives a {type(made).__name__}, not a model. Say what it is by "
            "--kind numpyro, pymc, density or target."
        )
    return made


def _arguments(
    model, data: Mapping[str, Any], where: str, source: str, hint: str = ""
) -> dict[str, Any]:
    """Data by name, checked against what the model takes."""
    parameters = inspect.signature(model).parameters.values()
    named = [
        p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    takes_any = any(p.kind == p.VAR_KEYWORD for p in parameters)
    unknown = [] if takes_any else sorted(set(data) - set(named))
    if unknown:
        raise CommandError(
            f"{where}: takes no {', '.join(unknown)}; it takes "
            f"{', '.join(named) or 'nothing'}. Rename or remove it in {source}."
        )
    needed = [p.name for p in parameters if p.name in named and p.default is p.empty]
    missing = sorted(set(needed) - set(data))
    if missing:
        raise CommandError(
            f"{where}: needs {', '.join(missing)}. Give a file with these names by "
            f"--data.{hint}"
        )
    return dict(data)


def _as_jax(
    data: Mapping[str, Any], source: str, scalars: bool = False
) -> dict[str, Any]:
    """Arrays for JAX; single numbers, which may be sizes, only if wanted."""
    for name, value in data.items():
        if isinstance(value, np.ndarray) and value.dtype.kind in "US" and value.size:
            what = f"column '{name}'" if source.endswith(".csv") else f"'{name}'"
            raise CommandError(
                f"{source}: {what} holds text ('{value.flat[0]}'); code it as numbers."
            )
    try:
        return {
            name: jnp.asarray(value)
            if (isinstance(value, np.ndarray) and value.dtype.kind in "biuf")
            or (scalars and isinstance(value, int | float))
            else value
            for name, value in data.items()
        }
    except OverflowError as error:
        raise CommandError(
            f"{source}: holds an integer that is too large ({error}). Write it as a "
            "float, such as 1e30."
        ) from error


_RULES: tuple[tuple[str, Callable[[ModuleType, Any], bool]], ...] = (
    ("target", lambda module, model: isinstance(model, AbstractTarget)),
    ("pymc", lambda module, model: _is_pymc_model(model)),
    ("density", lambda module, model: "like" in vars(module)),
    ("numpyro", lambda module, model: _uses(module, "numpyro")),
    ("pymc", lambda module, model: _uses(module, "pymc")),
    ("target", lambda module, model: _uses(module, "softcvi")),
    ("numpyro", lambda module, model: True),
)
MAKERS: dict[str, Callable[[Request], AbstractTarget]] = {
    "numpyro": _from_numpyro,
    "pymc": _from_pymc,
    "density": _from_density,
    "target": _from_target,
}
