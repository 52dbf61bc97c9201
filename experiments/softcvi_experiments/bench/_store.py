"""Results on disk: JSON with its table and plot beside it."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from softcvi_experiments.bench._machine import describe_machine
from softcvi_experiments.bench._options import Options
from softcvi_experiments.bench._plots import PLOTS
from softcvi_experiments.bench._tables import TABLES
from softcvi_experiments.store import write_json

Payload = dict[str, Any]


class Result:
    """A result that grows part by part; what is measured is on disk at once.

    Args:
        suite: Name of the suite.
        options: Settings of the run.

    Example:
        >>> import tempfile
        >>> options = Options(Path(tempfile.mkdtemp()), quick=True, say=lambda s: None)
        >>> result = Result("compile", options)
        >>> result.add("imports", {"reference": 2.0, "softcvi": 2.5, "ratio": 1.25})
        >>> sorted(path.name for path in result.finish())[:2]
        ['compile.json', 'compile.md']
    """

    def __init__(self, suite: str, options: Options) -> None:
        self.options = options
        self._began = time.perf_counter()
        self.payload: Payload = {
            "suite": suite,
            "command": _command(suite, options),
            "quick": options.quick,
            "machine": describe_machine(),
            "parts": {},
            "made": {},
        }
        options.out.mkdir(parents=True, exist_ok=True)
        self.path = options.out / f"{suite}.json"
        if options.parts and self.path.exists():
            # A part that is measured again joins the others.
            stored = json.loads(self.path.read_text())
            if stored["quick"] == options.quick:
                self.payload["parts"] = stored["parts"]
                # What was measured before keeps its own date, machine and command.
                before = _first_made(stored)
                self.payload["made"] = {
                    part: stored.get("made", {}).get(part, before)
                    for part in stored["parts"]
                }

    def add(self, part: str, value: Any) -> None:
        """Keep what a part found.

        Example:
            >>> import tempfile
            >>> options = Options(Path(tempfile.mkdtemp()))
            >>> Result("growth", options).add("memory", [])
        """
        self.payload["parts"][part] = value
        self.payload["made"][part] = _first_made(self.payload)
        self.payload["seconds_total"] = round(time.perf_counter() - self._began, 1)
        write_json(self.path, self.payload)

    def finish(self) -> list[Path]:
        """Write table and plot; returns the files."""
        files = [self.path, *redraw(self.path)]
        self.options.say("wrote " + ", ".join(str(path) for path in files))
        return files


def _first_made(payload: Payload) -> dict[str, Any]:
    """Command, date, commit and machine of a whole result."""
    machine = payload["machine"]
    return {
        "command": payload["command"],
        "date": machine["date"],
        "commit": machine.get("commit"),
        "softcvi": machine["versions"].get("softcvi"),
        "jax": machine["versions"].get("jax"),
        "processor": machine["processor"],
    }


def _command(suite: str, options: Options) -> str:
    words = ["softcvi bench", f"--suite {suite}"]
    if options.quick:
        words.append("--quick")
    if options.parts:
        words.append(f"--parts {','.join(options.parts)}")
    if options.repeats != Options.repeats:
        words.append(f"--repeats {options.repeats}")
    if suite == "figure":
        words.append(f"--fits {options.fits}" + (" --full" if options.full else ""))
    return " ".join(words)


def load_result(path: str | Path) -> Payload:
    """Read a stored result.

    Args:
        path: A file that a suite wrote.

    Example:
        >>> import tempfile
        >>> options = Options(Path(tempfile.mkdtemp()), say=lambda line: None)
        >>> result = Result("compile", options)
        >>> result.add("imports", {"reference": 2.0, "softcvi": 2.5, "ratio": 1.25})
        >>> load_result(result.path)["suite"]
        'compile'
    """
    payload = json.loads(Path(path).read_text())
    if payload.get("suite") not in TABLES:
        raise ValueError(f"{path}: not a result of softcvi bench")
    return payload


def speed_table(path: str | Path) -> str:
    """A stored result as Markdown, with the command and the machine behind it.

    Args:
        path: A file that a suite wrote, such as ``results/bench/peers.json``.

    Example:
        >>> import tempfile
        >>> options = Options(Path(tempfile.mkdtemp()), say=lambda line: None)
        >>> result = Result("compile", options)
        >>> result.add("imports", {"reference": 2.0, "softcvi": 2.5, "ratio": 1.25})
        >>> print(speed_table(result.path).splitlines()[2])
        | seconds |                     2.00 |       2.50 |  1.25 |
    """
    payload = load_result(path)
    return "\n\n".join([*TABLES[payload["suite"]](payload), _footnote(payload)])


def _footnote(payload: Payload) -> str:
    machine = payload["machine"]
    versions = ", ".join(f"{k} {v}" for k, v in machine["versions"].items())
    note = (
        f"`{payload['command']}` on {machine['processor']}, {machine['cores']} cores, "
        f"{machine['device']}, {machine['date']}; Python {machine['python']}, "
        f"{versions}."
    )
    others = {
        part: made["date"]
        for part, made in payload.get("made", {}).items()
        if made["date"] != machine["date"]
    }
    if others:
        note += " " + " ".join(f"Part {p}: {date}." for p, date in others.items())
    return f"{note} Quick form: the numbers mean nothing." if payload["quick"] else note


def redraw(path: str | Path) -> list[Path]:
    """Write table and plot of a stored result beside it, measuring nothing.

    Args:
        path: A file that a suite wrote.

    Returns:
        The files written; no plot where Matplotlib is not installed.

    Example:
        >>> import tempfile
        >>> options = Options(Path(tempfile.mkdtemp()), say=lambda line: None)
        >>> result = Result("compile", options)
        >>> result.add("imports", {"reference": 2.0, "softcvi": 2.5, "ratio": 1.25})
        >>> [path.name for path in redraw(result.path)]
        ['compile.md', 'compile.png']
    """
    path = Path(path)
    table, picture = path.with_suffix(".md"), path.with_suffix(".png")
    table.write_text(speed_table(path) + "\n")
    payload = load_result(path)
    try:
        PLOTS[payload["suite"]](payload, picture)
    except ModuleNotFoundError as error:
        print(f"no plot: {error.name} is not installed", file=sys.stderr)
        return [table]
    return [table, picture]
