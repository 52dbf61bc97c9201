"""From ``model.py:model`` and data to a target, whatever kind of model it is."""

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np

from softcvi.cli._errors import FAILURE, CommandError, in_file
from softcvi.cli._model_error import model_error
from softcvi.targets import AbstractTarget, DensityTarget

KINDS = ("auto", "numpyro", "pymc", "density", "target")
_LIKE = (
    "define `like` beside it in the file: one parameter point, such as "
    "like = {'x': jnp.zeros(3)}."
)


def split_name(text: str) -> tuple[Path, str]:
    """The file and the name in ``FILE:NAME``.

    Args:
        text: What the user wrote.

    Example:
        >>> split_name("model.py:eight_schools")[1]
        'eight_schools'
        >>> split_name("model.py")[1]
        'model'
    """
    head, colon, name = text.rpartition(":")
    # A lone drive letter of Windows is no file name.
    if not colon or "." not in head:
        head, name = text, "model"
    return Path(head), name


def load_target(
    path: Path,
    name: str,
    data: Mapping[str, Any],
    kind: str = "auto",
    source: str = "--data",
) -> AbstractTarget:
    """Import the file and make a target of what it calls by that name.

    Args:
        path: The Python file.
        name: A model, a density or a target in it.
        data: Named values for its arguments.
        kind: One of ``KINDS``.
        source: Where the data came from, for messages.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "normal.py"
        >>> code = "like = {'x': 0.0}" + chr(10) + "def log_prob(t): return -t['x']**2"
        >>> _ = path.write_text(code)
        >>> load_target(path, "log_prob", {}).structure
        Structure(x: ())
    """
    module = _import(path)
    if not hasattr(module, name):
        public = [n for n, v in vars(module).items() if callable(v) and n[0] != "_"]
        own = [n for n in public if getattr(module, n).__module__ == module.__name__]
        listed = ", ".join(own) or "nothing"
        raise CommandError(f"{path}: has no '{name}'. It defines: {listed}.")
    model = getattr(module, name)
    is_target = isinstance(model, AbstractTarget)
    if not (callable(model) or _is_pymc_model(model) or is_target):
        raise CommandError(
            f"{path.name}:{name}: is no model but of type {type(model).__name__}. Name "
            "a NumPyro model or a log density (a function), a PyMC model or a softcvi "
            "target."
        )
    kind = _detect(module, model) if kind == "auto" else kind
    makers: dict[str, Callable[..., AbstractTarget]] = {
        "numpyro": _from_numpyro,
        "pymc": _from_pymc,
        "density": _from_density,
        "target": _from_target,
    }
    try:
        return makers[kind](module, model, data, f"{path.name}:{name}", source)
    except CommandError:
        raise
    except Exception as error:
        explained = model_error(error, path, name, data, source)
        if explained is error:
            raise
        raise CommandError(
            f"{explained}\n(read as a {kind} model; see --kind)"
        ) from error


def _import(path: Path) -> ModuleType:
    if not path.is_file():
        raise CommandError(f"{path}: no such file. Give the model as FILE.py:NAME.")
    path = path.resolve()
    spec = importlib.util.spec_from_file_location(f"softcvi_model_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise CommandError(f"{path}: no Python file. Give the model as FILE.py:NAME.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    # A model may import what lies beside it.
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError:
        raise
    except Exception as error:
        where = in_file(error, path) or f"{path.name}: {error}"
        raise CommandError(where, FAILURE) from error
    finally:
        sys.path.remove(str(path.parent))
    return module


def _detect(module: ModuleType, model: Any) -> str:
    if isinstance(model, AbstractTarget):
        return "target"
    if _is_pymc_model(model):
        return "pymc"
    if hasattr(module, "like"):
        return "density"
    for package, kind in (("numpyro", "numpyro"), ("pymc", "pymc")):
        if _uses(module, package):
            return kind
    return "target" if _uses(module, "softcvi") else "numpyro"


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


def _from_numpyro(module, model, data, where, source) -> AbstractTarget:
    from softcvi.adapters import from_numpyro

    # A file that never imports NumPyro may well hold a density, known by its `like`.
    hint = "" if _uses(module, "numpyro") else f"\nIs it a log density? Then {_LIKE}"
    given = _as_jax(data, source)
    return from_numpyro(model, **_arguments(model, given, where, source, hint))


def _from_pymc(module, model, data, where, source) -> AbstractTarget:
    from softcvi.adapters import from_pymc

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


def _from_density(module, model, data, where, source) -> AbstractTarget:
    if not hasattr(module, "like"):
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
        module.like,
        space=getattr(module, "space", None),
        observed=_as_jax(data, source, scalars=True) if takes_data else None,
    )


def _from_target(module, model, data, where, source) -> AbstractTarget:
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
    return {
        name: jnp.asarray(value)
        if (isinstance(value, np.ndarray) and value.dtype.kind in "biuf")
        or (scalars and isinstance(value, int | float))
        else value
        for name, value in data.items()
    }
