"""From a program as the user gives it to C++, by the compiler of the httpstan wheel.

Far from the posterior a solver of differential equations may take millions of steps and
hold up a whole fit for minutes. Stan has no limit on the time of a density; functions
that solvers integrate count their calls, and ``shim.cpp`` can give a point up.
"""

import json
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from softcvi.adapters.stan._hierarchies import Hierarchy, hierarchies
from softcvi.adapters.stan._old_syntax import modernised, newer_features, renamed
from softcvi.adapters.stan._rounding import parameter_types

_SOLVERS = re.compile(
    r"\b(?:ode_\w+|integrate_ode_\w+|integrate_1d|dae\w*|algebra_solver\w*|solve_\w+)"
    r"\(\s*(\w+functor__)\(\)"
)
_HEADER = "#include <stan/model/model_header.hpp>\n"
_CLASH = re.compile(r"Function '(\w+)' is already declared in the Stan Math library")


def counted(cpp: str) -> str:
    r"""The C++ of a program in which functions that solvers call count their calls.

    Args:
        cpp: What stanc wrote.

    Example:
        >>> cpp = _HEADER + "struct f_functor__ { g() { return f(); }\n};\n"
        >>> "count_call" in counted(cpp)
        False
        >>> "::softcvi_count_call(); return f();" in counted(
        ...     cpp + "ode_rk45(f_functor__(), y0);"
        ... )
        True
    """
    names = set(_SOLVERS.findall(cpp))
    for name in names:
        body = re.compile(rf"struct {name} \{{.*?\n\}};", re.DOTALL)
        cpp = body.sub(_count_before_return, cpp, count=1)
    if not names:
        return cpp
    return cpp.replace(_HEADER, f"{_HEADER}void softcvi_count_call();\n", 1)


def _count_before_return(match: re.Match) -> str:
    return match[0].replace("return ", "::softcvi_count_call(); return ")


@dataclass(frozen=True)
class Source:
    """The text of a program and where it came from.

    Attributes:
        text: The program.
        name: A short name for messages.
        folder: Where ``#include`` looks for files, if the program is a file.

    Example:
        >>> Source("parameters { real x; } model { x ~ std_normal(); }").name
        'model.stan'
    """

    text: str
    name: str = "model.stan"
    folder: Path | None = None


def as_source(program: str | os.PathLike) -> Source:
    """Read the program if it is a path, take it as it is if it is text.

    Args:
        program: A path, or the text of a program, which has braces in it.

    Example:
        >>> as_source("parameters { real x; }").folder is None
        True
    """
    if isinstance(program, str) and ("{" in program or "\n" in program):
        return Source(program)
    try:
        path = Path(program)
    except TypeError as error:
        raise TypeError(
            "program: expected a path to a Stan file or the text of a Stan program; "
            f"got {type(program).__name__}."
        ) from error
    if not path.is_file():
        raise FileNotFoundError(
            f"program: {path}: no such file. Give a path to a Stan file, or the text "
            "of a program."
        )
    return Source(path.read_text(), path.name, path.resolve().parent)


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
    taken, first = _to_cpp(source)
    if first.returncode != 0:
        newer = modernised(source.text)
        if newer == source.text:
            raise ValueError(_refusal(source, first))
        taken, second = _to_cpp(Source(newer, source.name, source.folder))
        if second.returncode != 0:
            # The first message may be about syntax that is rewritten; the second is
            # about what is left then.
            raise ValueError(
                f"{_refusal(source, first)}\nRewritten in current syntax it is refused "
                f"for this:\n{_output_of(second)}"
            )
        first = second
    info = json.loads(_run(taken, "--info").stdout)
    inputs = {name: _input(facts) for name, facts in info["inputs"].items()}
    canonical = _run(taken, "--print-canonical").stdout
    return Translation(
        counted(first.stdout),
        inputs,
        parameter_types(canonical),
        hierarchies(canonical),
    )


def _to_cpp(source: Source) -> tuple[Source, subprocess.CompletedProcess]:
    """A program and what stanc says to it, once its functions have free names."""
    answer = _run(source, "--print-cpp")
    while answer.returncode != 0 and (clash := _CLASH.search(answer.stderr)):
        text = renamed(source.text, clash[1])
        if text == source.text:
            break
        source = Source(text, source.name, source.folder)
        answer = _run(source, "--print-cpp")
    return source, answer


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


def _output_of(answer: subprocess.CompletedProcess) -> str:
    return answer.stderr.strip() or answer.stdout.strip()


def _refusal(source: Source, answer: subprocess.CompletedProcess) -> str:
    text = f"program: the Stan compiler refused {source.name}:\n{_output_of(answer)}"
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
