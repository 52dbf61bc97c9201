"""One process at a time writes to an output folder."""

import contextlib
import json
import os
import platform
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from softcvi.cli._errors import CommandError
from softcvi.cli._terminal import tell

_LOCK = ".softcvi.lock"
_LONGEST = 10_000


@contextlib.contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Make a folder and lock it; a second process is told who holds it.

    Folders that were made here and are still empty at the end are removed.

    Args:
        folder: The output folder.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp()) / "new" / "out"
        >>> with hold_folder(folder):
        ...     (folder / ".softcvi.lock").exists()
        True
        >>> folder.parent.exists()
        False
    """
    from filelock import FileLock, Timeout

    refuse_links(folder, _LOCK)
    made = [p for p in (folder, *folder.parents) if not p.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / _LOCK
        # A pipe would be waited for.
        if path.exists() and not path.is_file():
            raise OSError(f"{_LOCK} is no file")
        lock = FileLock(path, timeout=0)
        lock.acquire()
    except Timeout:
        who = _holder(folder / _LOCK) or "another process"
        raise CommandError(
            f"--out {folder}: is in use by {who}. Wait for it, or give another folder."
        ) from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise CommandError(
            f"--out {folder}: cannot be written ({why}). Give another folder."
        ) from error
    killed = _holder(path)
    if killed is not None:
        tell(f"note: {folder}: {killed} did not come to its end")
    try:
        with contextlib.suppress(OSError):  # who holds it is a courtesy, no promise
            path.write_text(json.dumps(_this_process()), encoding="utf-8")
        yield
    finally:
        # Unlinked while it is held, so that no other process can hold the same file.
        with contextlib.suppress(OSError):
            path.unlink()
        lock.release()
        for empty in made:
            with contextlib.suppress(OSError):
                empty.rmdir()


def refuse_links(folder: Path, *names: str) -> None:
    """Refuse to write through links: a folder of somebody else can lead anywhere.

    Args:
        folder: The output folder.
        names: Files that are to be written there.

    Example:
        >>> refuse_links(Path("."), "report.html")
    """
    for name in names:
        path = folder / name
        if path.is_symlink():
            raise CommandError(
                f"{path}: is a link to {os.readlink(path)!r}, which would be written "
                "over. Remove the link, or give another folder."
            )


def _this_process() -> dict[str, str | int]:
    return {
        "pid": os.getpid(),
        "host": platform.node(),
        "command": " ".join(["softcvi", *sys.argv[1:]])[:200],
        "since": datetime.now().astimezone().isoformat(timespec="seconds"),
    }


def _holder(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            who = json.loads(file.read(_LONGEST))
        return (
            f"process {who['pid']} on {who['host']} since {who['since']} "
            f"({who['command']})"
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
