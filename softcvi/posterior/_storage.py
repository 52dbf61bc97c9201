"""Posteriors on disk: a zip file with a JSON header and plain arrays.

Format 1 compressed its arrays and named private modules. Format 2 stores arrays as they
are, so that a file is as large as what is read from it, and names public things.
"""

import io
import json
import math
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from softcvi._atomic import atomic_write
from softcvi.posterior._encoding import Decoder, Encoder

_FORMAT = 2
_HEADER, _ARRAYS = "header.json", "arrays.npz"
# Compressed arrays of format 1 may be this many times larger than the file, and this
# large in any case: zeros compress well.
_MAX_EXPANSION = 20
_SMALL = 64 * 2**20
_MAX_ARRAY_HEADER = 4096
_NUMERIC_KINDS = "biufc"


def write(
    path: str | os.PathLike, parts: dict[str, Any], facts: dict[str, Any]
) -> None:
    """Write parts (pytrees) and facts (plain JSON); a crash leaves no half file."""
    encoder = Encoder()
    header = {
        "format": _FORMAT,
        "parts": {name: encoder.encode(part, name) for name, part in parts.items()},
        "facts": facts,
    }
    content = json.dumps(header)
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {f"a{i}": a for i, a in enumerate(encoder.arrays)}
    np.savez(buffer, **arrays)
    with atomic_write(path) as handle, zipfile.ZipFile(handle, "w") as archive:
        archive.writestr(_HEADER, content)
        archive.writestr(_ARRAYS, buffer.getvalue())


def read(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what ``write`` wrote; a damaged or foreign file is refused.

    What is allocated is bounded by the size of the file, before it is allocated.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file. Check the path given to load.")
    try:
        return _read(path)
    # Damaged files make the libraries below raise nearly anything: BadZipFile,
    # zlib.error, EOFError, TokenError, RecursionError, KeyError, MemoryError.
    except Exception as error:
        words = str(error) or type(error).__name__
        raise ValueError(
            f"{path}: not a posterior saved by this version of softcvi, or damaged "
            f"({words:.300}). Save it again with posterior.save(path)."
        ) from error


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    if not path.is_file():  # opening a pipe would wait for ever
        raise ValueError("not a file")
    with zipfile.ZipFile(path) as archive:
        header = json.loads(_stored_bytes(archive, _HEADER))
        content = _stored_bytes(archive, _ARRAYS)
    if not isinstance(header, dict) or header.get("format") not in (1, _FORMAT):
        raise ValueError("another format")
    decoder = Decoder(_read_arrays(content))
    parts = {name: decoder.decode(node) for name, node in header["parts"].items()}
    facts = header["facts"]
    if not isinstance(facts, dict):
        raise ValueError("facts are missing")
    return parts, facts


def _stored_bytes(archive: zipfile.ZipFile, name: str) -> bytes:
    """A member that is stored as it is: as large as the file, at most."""
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise ValueError(f"{name} is compressed")
    return archive.read(info)


def _read_arrays(content: bytes) -> list[np.ndarray]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        total = sum(info.file_size for info in members)
        if total > max(_SMALL, _MAX_EXPANSION * len(content)):
            raise ValueError(
                f"arrays of {total} bytes in a file of {len(content)}: too large"
            )
        names = [f"a{i}.npy" for i in range(len(members))]
        return [_read_array(archive.read(name)) for name in names]


def _read_array(content: bytes) -> np.ndarray:
    """An array whose header is checked against its bytes before it is made."""
    handle = io.BytesIO(content)
    version = np.lib.format.read_magic(handle)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, in_columns, dtype = read_header(handle, max_header_size=_MAX_ARRAY_HEADER)
    if dtype.kind not in _NUMERIC_KINDS and dtype.name != "bfloat16":
        raise ValueError(f"an array of {dtype}")
    rest = len(content) - handle.tell()
    if math.prod(shape) * dtype.itemsize != rest or any(n < 0 for n in shape):
        raise ValueError(f"an array of shape {shape} in {rest} bytes")
    flat = np.frombuffer(content, dtype, offset=handle.tell())
    return flat.reshape(shape, order="F" if in_columns else "C")
