"""What a fit in a folder was told, beside what it is told now."""

from pathlib import Path
from typing import Any

from softcvi.cli._errors import CommandError
from softcvi.cli._fit_files import read_record

# What the record leaves out if it was not given.
_DEFAULTS = {"alpha": 0.75, "kind": "auto", "particles": 8}
# File names may change; what is in them may not.
_NOT_COMPARED = ("data",)


def check_same(folder: Path, settings: dict[str, Any]) -> None:
    """Refuse to go on with a fit that was told something else."""
    before = read_record(folder).get("settings")
    if before is None:
        return
    changed = _changes({**_DEFAULTS, **before}, {**_DEFAULTS, **settings})
    if changed:
        raise CommandError(
            f"--resume: {folder} holds a fit that was told something else: "
            f"{', '.join(changed)}.\nGive --overwrite in its place to start again, or "
            "another --out."
        )


def _changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    keys = [key for key in {**before, **now} if key not in _NOT_COMPARED]
    return [
        _change(key, before.get(key), now.get(key))
        for key in keys
        if before.get(key) != now.get(key)
    ]


def _change(key: str, before: Any, now: Any) -> str:
    if key == "data sha256":
        return "other --data"
    if key == "model sha256":
        return "the model's file has changed"
    flag = key if key == "model" else f"--{key.replace('_', '-')}"
    return f"{flag} {_word(before)} (now {_word(now)})"


def _word(value: Any) -> str:
    return "none" if value is None else str(value)
