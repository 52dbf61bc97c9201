"""The compilation cache: programs compiled once are read from disk the next time."""

import contextlib
import hashlib
import logging
import os
import platform
import sys
from pathlib import Path

import jax

from softcvi._compile import write_programs_whole
from softcvi._private_folder import private_folder

_SWITCH = "SOFTCVI_CACHE"
_FOLDER = "SOFTCVI_CACHE_DIR"
_QUIET = "TF_CPP_MIN_LOG_LEVEL"
_OFF = ("0", "no", "off", "false")
# Bytes of compiled programs to keep: those of some thousand models.
_MAX_BYTES = 1 << 30


class _Choice:
    """Whether this process has decided about the cache."""

    is_made = False


class _Standard:
    """The folder that is used when none is named."""

    def __repr__(self) -> str:
        return "standard folder"


_STANDARD = _Standard()


def enable_compilation_cache(
    path: str | os.PathLike | _Standard | None = _STANDARD,
) -> Path | None:
    """Keep compiled programs on disk, so that the next process starts at once.

    Compiling often takes longer than a fit, so that the first fit of a process, or the
    first ``from_numpyro``, calls this by itself; ``SOFTCVI_CACHE=0`` in the
    environment, or None as ``path``, turns it off. A folder that JAX was already told
    of (``JAX_COMPILATION_CACHE_DIR``) stays as it is, unless ``path`` is given. The
    standard folder is kept below a gigabyte, oldest programs go first; several
    processes can use it at the same time. It is not used if other users can write to
    it, who would decide what is run. XLA would print a page for each program that it
    reads, so its logs are turned off, unless you chose a level
    (``TF_CPP_MIN_LOG_LEVEL``) yourself.

    Args:
        path: The folder; by default ``SOFTCVI_CACHE_DIR``, or the user's cache folder
            of the platform. None for no cache.

    Returns:
        The folder in use, or None if there is none or it cannot be written to.

    Example:
        >>> import jax, softcvi, tempfile
        >>> before = jax.config.jax_compilation_cache_dir
        >>> folder = softcvi.enable_compilation_cache(tempfile.mkdtemp())
        >>> folder.is_dir()
        True
        >>> jax.config.update("jax_compilation_cache_dir", before)
    """
    _Choice.is_made = True
    if path is None:
        jax.config.update("jax_compilation_cache_dir", None)
        return None
    known = jax.config.jax_compilation_cache_dir
    if known and isinstance(path, _Standard):
        _silence_reading()
        return Path(known)
    try:
        # A folder of its own: downloads and Stan programs lie beside it.
        base = _standard_folder() / "xla" if isinstance(path, _Standard) else Path(path)
        folder = base / _machine() if isinstance(path, _Standard) else base
        if isinstance(path, _Standard):
            private_folder(base)
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no such user, as in some containers: no home
        return None
    if not os.access(folder, os.W_OK):
        return None
    if isinstance(path, _Standard):
        remove_oldest(base, _MAX_BYTES)
    _silence_reading()
    write_programs_whole()
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # The small ones, too: a fit has dozens, compiled in 50 ms and read in 3 ms each.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return folder


def cache_by_default() -> None:
    """Turn the cache on, unless this process or its environment has decided already."""
    if _Choice.is_made:
        return
    _Choice.is_made = True
    is_off = os.environ.get(_SWITCH, "").strip().lower() in _OFF
    if is_off or jax.config.jax_compilation_cache_dir:
        return
    if jax.config.jax_enable_compilation_cache:
        enable_compilation_cache()


def remove_oldest(folder: Path, limit: int) -> None:
    """Delete the files that were used longest ago until the rest is below a limit.

    Another process may be deleting too, or be about to read: JAX then compiles again.

    Args:
        folder: The cache, with its subfolders.
        limit: Bytes that may stay.
    """
    found = []
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            stat = path.stat()
            if path.is_file():
                found.append((max(stat.st_atime, stat.st_mtime), stat.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found, key=lambda item: item[0]):
        if total <= limit:
            break
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size


def _silence_reading() -> None:
    # XLA has read the variable by now, and JAX has set it to 1 if nobody else did; the
    # variable is for child processes.
    if os.environ.get(_QUIET, "1") == "1":
        os.environ[_QUIET] = "3"
        logger = logging.getLogger("jax")
        level = logger.level
        jax.config.update("jax_logging_level", "CRITICAL")
        logger.setLevel(level)  # what JAX itself logs is still shown


def _machine() -> str:
    """A name of the processor type: machines with different ones may share a home.

    JAX's own key does not know the processor's instructions.
    """
    # The number changes with how files are written: earlier ones may be truncated.
    described = ["2", platform.machine(), platform.processor()]
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        described += sorted({s for s in lines if s.startswith(("flags", "Features"))})
    return hashlib.sha256("\n".join(described).encode()).hexdigest()[:16]


def _standard_folder() -> Path:
    named = os.environ.get(_FOLDER)
    if named:
        return Path(named)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        return Path(base) / "softcvi" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "softcvi"
    base = os.environ.get("XDG_CACHE_HOME", "")
    # By its specification a relative path is to be ignored.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "softcvi"
