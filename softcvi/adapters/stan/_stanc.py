"""The Stan compiler that the httpstan wheel ships."""

import json
import subprocess
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from softcvi.adapters.stan._decentre import Hierarchy, hierarchies
from softcvi.adapters.stan._new_syntax import newer_features
from softcvi.adapters.stan._old_syntax import modernised
from softcvi.adapters.stan._rounding import parameter_types
from softcvi.adapters.stan._solver_calls import counted
from softcvi.adapters.stan._source import Source

_EXTRA = "httpstan is not installed and is needed here: pip install 'softcvi[stan]'."


class Input(NamedTuple):
    """One variable of the data block.

    Attributes:
        type: ``int``, ``real`` or ``complex``; for a tuple, its parts.
        dimensions: Number of axes; vectors have one, matrices two.

    Example:
        >>> Input("int", 1).dimensions
        1
    """

    type: "str | tuple[Input, ...]"
    dimensions: int


class Translation(NamedTuple):
    """What stanc makes of a program, and what its text says of its parameters.

    Attributes:
        cpp: The program in C++.
        inputs: The data that it declares.
        types: Types of its parameters.
        hierarchies: Parameters whose scale is a parameter.

    Example:
        >>> Translation("int main;", {"N": Input("int", 0)}, {}).inputs["N"].type
        'int'
    """

    cpp: str
    inputs: dict[str, Input]
    types: dict[str, str]
    hierarchies: tuple[Hierarchy, ...] = ()


def httpstan_folder() -> Path | None:
    """Where httpstan lies, or None. It is not imported: its files are all we need."""
    spec = find_spec("httpstan")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def httpstan_version() -> str:
    """Version of the installed httpstan."""
    return version("httpstan")


def translate(source: Source) -> Translation:
    """Translate a program to C++; one in old syntax is rewritten first.

    Args:
        source: The program.

    Raises:
        ValueError: With stanc's own message, if it refuses the program.
    """
    first = _run(source, "--print-cpp")
    if first.returncode != 0:
        newer = modernised(source.text)
        if newer == source.text:
            raise ValueError(_refusal(source, first))
        rewritten = Source(newer, source.name, source.folder)
        second = _run(rewritten, "--print-cpp")
        if second.returncode != 0:
            # The first message may be about syntax that is rewritten; the second is
            # about what is left then.
            raise ValueError(
                f"{_refusal(source, first)}\nRewritten in current syntax it is refused "
                f"for this:\n{_said(second)}"
            )
        source, first = rewritten, second
    info = json.loads(_run(source, "--info").stdout)
    inputs = {name: _input(facts) for name, facts in info["inputs"].items()}
    canonical = _run(source, "--print-canonical").stdout
    return Translation(
        counted(first.stdout),
        inputs,
        parameter_types(canonical),
        hierarchies(canonical),
    )


def _input(facts: dict[str, Any]) -> Input:
    kind = facts["type"]
    if isinstance(kind, list):
        kind = tuple(_input(part) for part in kind)
    return Input(kind, int(facts.get("dimensions", 0)))


def _run(source: Source, *options: str) -> subprocess.CompletedProcess:
    folder = httpstan_folder()
    if folder is None:
        raise ModuleNotFoundError(_EXTRA, name="httpstan")
    with tempfile.TemporaryDirectory(prefix="softcvi-stan-") as temporary:
        path = Path(temporary) / "model.stan"
        path.write_text(source.text)
        command = [
            str(folder / "stanc"),
            *options,
            "--name=softcvi_stan_model",
            f"--filename-in-msg={source.name}",
        ]
        if source.folder is not None:
            command.append(f"--include-paths={source.folder}")
        return subprocess.run(
            [*command, str(path)], capture_output=True, text=True, check=False
        )


def _said(answer: subprocess.CompletedProcess) -> str:
    return answer.stderr.strip() or answer.stdout.strip()


def _refusal(source: Source, answer: subprocess.CompletedProcess) -> str:
    text = f"program: the Stan compiler refused {source.name}:\n{_said(answer)}"
    if "#include" in source.text and source.folder is None:
        text += (
            "\nFiles that a program includes are looked for in its own folder: give "
            "the path of the program instead of its text."
        )
    newer = newer_features(source.text)
    if newer:
        needed = ", ".join(f"{name} (Stan {since})" for name, since in newer.items())
        text += (
            f"\nThe program uses {needed}; the compiler here is that of httpstan "
            f"{httpstan_version()}, {_run(Source(''), '--version').stdout.strip()}. "
            "Install bridgestan, which has a newer one, and give "
            "engine=softcvi.adapters.stan.BridgeStan()."
        )
    return text
