"""Files and their SHA256 sums."""

import hashlib
from pathlib import Path

from softcvi_experiments.references._errors import ReferenceFileError


def sha256(path: Path) -> str:
    """Hash a file.

    Args:
        path: The file.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "empty"
        >>> path.touch()
        >>> sha256(path)[:8]
        'e3b0c442'
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_sums(path: Path) -> dict[str, str]:
    """Read lines of ``sum  name``, as ``sha256sum`` writes them.

    Args:
        path: The list of sums.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "SHA256SUMS"
        >>> _ = path.write_text("1f  a.npz")
        >>> read_sums(path)
        {'a.npz': '1f'}
    """
    lines = [line.split() for line in path.read_text().splitlines() if line.strip()]
    return {name: digest for digest, name in lines}


def verify(path: Path, digest: str, remedy: str) -> Path:
    """Return ``path`` if the file is there and intact, else say what to do.

    Args:
        path: The file.
        digest: Its expected SHA256.
        remedy: How to get a good one.

    Example:
        >>> verify(Path("nowhere.npz"), "1f", "build it")
        Traceback (most recent call last):
        ...
        softcvi_experiments.references._errors.ReferenceFileError: reference file ...
    """
    expected = f"SHA256 {digest}"
    if not path.is_file():
        raise ReferenceFileError(path, "is missing", expected, remedy)
    found = sha256(path)
    if found != digest:
        raise ReferenceFileError(path, f"is damaged: SHA256 {found}", expected, remedy)
    return path
