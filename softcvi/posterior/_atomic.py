"""Files that are written whole or not at all."""

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike) -> Iterator[IO[bytes]]:
    """Open a new file that takes the place of ``path`` once it is complete.

    If writing fails, the old file stays as it was and nothing else is left behind. The
    folder is made if it is missing.

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
    path.parent.mkdir(parents=True, exist_ok=True)
    # Opened by its name, for a mode that follows the umask; tempfile's is private.
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        with unfinished.open("xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(unfinished, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError):
            # A full disk does not say which file it was about.
            words = error.strerror or str(error)
            raise OSError(error.errno, words, str(path)) from error
        raise
