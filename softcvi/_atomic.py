"""Files that are written whole or not at all."""

import contextlib
import errno
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO

# Ending of files that are not complete yet.
UNFINISHED = ".part"


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike) -> Iterator[IO[bytes]]:
    """Open a new file that takes the place of ``path`` once it is complete.

    If writing fails, the old file stays as it was and nothing else is left behind. A
    process that was killed while it wrote leaves an unfinished file, which the next
    write to the same path removes. The folder is made if it is missing. A symbolic
    link stays one: what it points to is replaced. What is there and no file, such as a
    folder or a device (``/dev/null``), is refused and stays.

    Args:
        path: The file to write or replace.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "file"
        ...     with atomic_write(path) as handle:
        ...         _ = handle.write(b"content")
        ...     path.read_bytes()
        b'content'
    """
    path = Path(path)
    unfinished: Path | None = None
    try:
        destination = Path(os.path.realpath(path)) if path.is_symlink() else path
        if destination.exists() and not destination.is_file():
            raise OSError(errno.EINVAL, "not a file, and is not replaced by one")
        destination.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(destination)
        handle, unfinished = _open_new(destination)
        with handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(unfinished, destination)
    except BaseException as error:
        if unfinished is not None:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError):
            # A full disk does not say which file it was about.
            words = error.strerror or str(error)
            raise OSError(error.errno, words, str(path)) from error
        raise


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write a text file in UTF-8, whole or not at all.

    Args:
        path: The file to write or replace.
        text: What it is to hold.
    """
    with atomic_write(path) as handle:
        handle.write(text.encode())


def _open_new(path: Path) -> tuple[IO[bytes], Path]:
    """A new file beside the path, held by this process."""
    while True:
        # Opened by its name, for a mode that follows the umask; tempfile's is private.
        unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}{UNFINISHED}")
        handle = unfinished.open("xb")
        _hold(handle)
        # Between opening and holding it, another writer may have taken it for one that
        # was left behind.
        if unfinished.exists():
            return handle, unfinished
        handle.close()


def remove_abandoned(path: Path) -> None:
    """Remove unfinished files of processes that were killed while they wrote.

    Args:
        path: The file that they were to replace.
    """
    digits = "[0-9a-f]" * 32
    name = "".join(f"[{c}]" if c in "*?[" else c for c in path.name)
    for left in path.parent.glob(f"{name}.{digits}{UNFINISHED}"):
        with contextlib.suppress(OSError), left.open("rb") as handle:
            if _hold(handle):
                left.unlink()


def _hold(handle: IO[bytes]) -> bool:
    """Lock a file until it is closed; whether this process is the one that holds it."""
    try:
        import fcntl
    except ModuleNotFoundError:  # Windows, where unfinished files are left alone
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
