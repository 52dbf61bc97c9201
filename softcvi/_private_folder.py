"""Folders of compiled programs, which only their owner may write to."""

import os
import stat
from pathlib import Path

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def private_folder(path: Path) -> Path:
    """Make a folder, or take one that no other user but root can write to.

    Args:
        path: The folder.

    Returns:
        The same path.

    Raises:
        PermissionError: If it belongs to another user, or others may replace it.
        OSError: If it cannot be made.

    Example:
        >>> import pathlib, tempfile
        >>> folder = private_folder(pathlib.Path(tempfile.mkdtemp()) / "stan")
        >>> folder.is_dir()
        True
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not hasattr(os, "getuid"):  # Windows, where a user's folders are private
        return path
    found = path.stat()
    if found.st_uid not in _trusted_users():
        raise PermissionError(
            f"{path}: belongs to another user, who could change the programs in it. "
            "Name a folder of your own in SOFTCVI_CACHE_DIR."
        )
    if found.st_mode & _OTHERS_WRITE:
        path.chmod(found.st_mode & ~_OTHERS_WRITE)
    for parent in path.resolve().parents:
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise PermissionError(
                f"{path}: everybody may write to {parent}, and so replace it. Name a "
                "folder of your own in SOFTCVI_CACHE_DIR."
            )
    return path


def is_own_file(path: Path) -> bool:
    """Whether a file is there, and no other user can have written it.

    Args:
        path: The file.

    Example:
        >>> is_own_file(Path("missing.so"))
        False
    """
    if not path.is_file():
        return False
    if not hasattr(os, "getuid"):
        return True
    found = path.stat()
    return found.st_uid in _trusted_users() and not found.st_mode & _OTHERS_WRITE


def _trusted_users() -> tuple[int, int]:
    # The administrator decides what is run anyway: folders of an image are its.
    return os.getuid(), 0
