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
try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]


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
    held: int | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / _LOCK
        # A pipe would be waited for.
        if path.exists() and not path.is_file():
            raise OSError(f"{_LOCK} is no file")
        lock = FileLock(path, timeout=0)
        lock.acquire()
        held = _lock_itself(folder)
    except (Timeout, BlockingIOError):
        lock.release()
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
        # Unlinked while it is held, so that no other process can hold the same file;
        # but not if it is another's by now, as the folder was moved away.
        if _is_at(held, folder):
            with contextlib.suppress(OSError):
                path.unlink()
        lock.release()
        if held is not None:
            os.close(held)
        for empty in made:
            with contextlib.suppress(OSError):
                empty.rmdir()


def _lock_itself(folder: Path) -> int | None:
    """Lock the folder, too, where that can be done: a file in it can be deleted."""
    if fcntl is None:
        return None
    number = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        raise
    except OSError:  # a file system on which folders have no locks
        pass
    return number


def _is_at(number: int | None, folder: Path) -> bool:
    """Whether an open folder is still the one of that name."""
    try:
        return number is None or os.path.samestat(os.fstat(number), os.stat(folder))
    except OSError:
        return False


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
