"""From ``model.py:model`` and data to a target, whatever kind of model it is."""

import contextlib
import dataclasses
import importlib.util
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from softcvi.cli._common import names_a_flag
from softcvi.cli._data import TABLES, read_data
from softcvi.cli._errors import FAILURE, USAGE, CommandError, in_file, words_of
from softcvi.cli._model_kinds import MAKERS, Request, detect, is_model
from softcvi.cli._reading import READING_SECONDS, ProcessEnd, limited, same_folder
from softcvi.targets import AbstractTarget


def split_name(text: str) -> tuple[Path, str]:
    """The file and the name in ``FILE:NAME``."""
    head, colon, name = text.rpartition(":")
    # A lone drive letter of Windows is no file name.
    if not colon or "." not in head:
        head, name = text, "model"
    return Path(head), name


@dataclasses.dataclass(frozen=True)
class ModelFile:
    """A model and its data, as the command line named them."""

    path: Path
    name: str
    data_path: Path | None
    seconds: float = READING_SECONDS

    @classmethod
    def parse(
        cls, text: str, data: Path | None, seconds: float = READING_SECONDS
    ) -> "ModelFile":
        """From ``FILE:NAME``."""
        path, name = split_name(text)
        name = path.stem if path.suffix in _READERS else name
        return cls(path, name, data, seconds)

    def __str__(self) -> str:
        return f"{self.path.name}:{self.name}"

    def read_data(self) -> "Mapping[str, Any] | Path":
        """The data by name; of a Stan program the file, which Stan's reader knows."""
        if self.data_path is None:
            return {}
        if self.path.suffix.lower() in _READERS and self.data_path.suffix not in TABLES:
            return self.data_path
        return read_data(self.data_path)

    @property
    def source(self) -> str:
        """Where the data came from, for messages."""
        return "--data" if self.data_path is None else self.data_path.name

    def load(
        self, data: Mapping[str, Any] | Path, kind: str = "auto"
    ) -> AbstractTarget:
        """The target, from what ``read_data`` gave."""
        with limited(self.path, self.seconds):
            return load_target(self.path, self.name, data, kind, self.source)


def load_target(
    path: Path,
    name: str,
    data: Mapping[str, Any] | Path,
    kind: str = "auto",
    source: str = "--data",
) -> AbstractTarget:
    """Read the file and make a target of what it calls by that name."""
    if not path.is_file():
        raise CommandError(f"{path}: no such file. Give the model as FILE.py:NAME.")
    reader = _READERS.get(path.suffix.lower(), _read_python)
    with same_folder():
        return reader(path, name, data, kind, source)


def _read_python(
    path: Path, name: str, data: Mapping[str, Any], kind: str, source: str
) -> AbstractTarget:
    module = _import(path)
    values = vars(module)
    if name not in values:
        own = [
            n
            for n, v in values.items()
            if callable(v) and n[0] != "_" and v.__module__ == module.__name__
        ]
        listed = ", ".join(own) or "nothing"
        raise CommandError(f"{path}: has no '{name}'. It defines: {listed}.")
    model = values[name]
    if not is_model(model):
        raise CommandError(
            f"{path.name}:{name}: is no model but of type {type(model).__name__}. Name "
            "a NumPyro model or a log density (a function), a PyMC model or a softcvi "
            "target."
        )
    kind = detect(module, model) if kind == "auto" else kind
    request = Request(module, model, data, f"{path.name}:{name}", source)
    try:
        return MAKERS[kind](request)
    except CommandError:
        raise
    except SystemExit as stop:
        raise exited(path, stop) from stop
    except Exception as error:
        explained = model_error(error, path, name, data, source)
        if explained is error:
            raise
        raise CommandError(
            f"{explained}\n(read as a {kind} model; see --kind)"
        ) from error


def _import(path: Path) -> ModuleType:
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
    except (ModuleNotFoundError, KeyboardInterrupt):
        raise
    except SystemExit as stop:
        raise exited(path, stop) from stop
    except BaseException as error:
        where = in_file(error, path) or f"{path.name}: {words_of(error)}"
        raise CommandError(where, FAILURE) from error
    finally:
        with contextlib.suppress(ValueError):  # a model may change the list
            sys.path.remove(str(path.parent))
    return module


def exited(path: Path, stop: SystemExit) -> CommandError:
    """The error for a model that ends the program instead of defining a model."""
    where = in_file(stop, path.resolve()) or f"{path.name}: SystemExit: {stop}"
    call = str(stop).split("(")[0] if isinstance(stop, ProcessEnd) else "sys.exit"
    return CommandError(f"{where}. Remove the call of {call} from the model.", FAILURE)


def _read_stan(
    path: Path, name: str, data: Mapping[str, Any] | Path, kind: str, source: str
) -> AbstractTarget:
    from softcvi.adapters import from_stan

    if kind != "auto":
        raise CommandError(
            f"--kind {kind}: {path.name} is a Stan program. Leave it out."
        )
    try:
        return from_stan(path, data)
    except (ValueError, RuntimeError) as error:
        raise CommandError(f"{path.name}: {error}") from error


# Endings of files that are not Python.
_READERS: dict[str, Any] = {".stan": _read_stan}


_ABOUT_SHAPES = re.compile("shape|broadcast|dimension|length", re.IGNORECASE)
# What the library calls the user's model.
_THE_MODEL = re.compile("^(target|model|log_prob): ")


def model_error(
    error: Exception, path: Path, name: str, data: Mapping[str, Any], source: str
) -> Exception:
    """The same error with the model's file and, for shapes, the data's lengths."""
    text = words_of(error).strip()
    if isinstance(error, CommandError | OSError | ImportError) or names_a_flag(text):
        return error
    where = in_file(error, path.resolve()) or _named(error, text, f"{path.name}:{name}")
    lengths = _unequal_lengths(data, source) if _ABOUT_SHAPES.search(text) else ""
    is_input = bool(lengths or _THE_MODEL.match(text))
    return CommandError(f"{where}\n{lengths}".rstrip(), USAGE if is_input else FAILURE)


def _named(error: Exception, text: str, where: str) -> str:
    if _THE_MODEL.match(text):
        return f"{where}: {_THE_MODEL.sub('', text)}"
    first = text.splitlines()[:1]
    return ": ".join([where, type(error).__name__, *first])


def _unequal_lengths(data: Mapping[str, Any], source: str) -> str:
    lengths = {
        name: len(value)
        for name, value in data.items()
        if isinstance(value, np.ndarray) and value.ndim
    }
    if len(set(lengths.values())) < 2:
        return ""
    (first, length), *others = lengths.items()
    listed = "".join(f", {name} has {length}" for name, length in others)
    return f"{source}: {first} has {length} values{listed}. Make them equally long."
