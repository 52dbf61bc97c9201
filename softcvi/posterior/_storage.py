"""Posteriors on disk: a zip file with a JSON header and plain arrays."""

import io
import json
import os
import struct
import uuid
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from softcvi.posterior._encoding import Decoder, Encoder

_FORMAT = 1
# What reading raises for truncated, altered and foreign files.
_UNREADABLE = (
    zipfile.BadZipFile,
    LookupError,
    ValueError,
    ImportError,
    AttributeError,
    TypeError,
    OSError,
    EOFError,
    RuntimeError,
    zlib.error,
    struct.error,
)


def write(
    path: str | os.PathLike, parts: dict[str, Any], facts: dict[str, Any]
) -> None:
    """Write parts (pytrees) and facts (plain JSON); a crash leaves no half file."""
    path = Path(path)
    encoder = Encoder()
    header = {
        "format": _FORMAT,
        "parts": {name: encoder.encode(part, name) for name, part in parts.items()},
        "facts": facts,
    }
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {f"a{i}": a for i, a in enumerate(encoder.arrays)}
    np.savez_compressed(buffer, **arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Opened by its name, for a mode that follows the umask; tempfile's is private.
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    with unfinished.open("xb") as handle:
        with zipfile.ZipFile(handle, "w") as archive:
            archive.writestr("header.json", json.dumps(header))
            archive.writestr("arrays.npz", buffer.getvalue())
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(unfinished, path)


def read(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what ``write`` wrote; a damaged or foreign file is refused."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file. Check the path given to load.")
    try:
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read("header.json"))
            with np.load(io.BytesIO(archive.read("arrays.npz"))) as stored:
                arrays = [stored[f"a{i}"] for i in range(len(stored.files))]
        if header["format"] != _FORMAT:
            raise ValueError(f"format {header['format']}")
        decoder = Decoder(arrays)
        parts = {name: decoder.decode(node) for name, node in header["parts"].items()}
        return parts, header["facts"]
    except _UNREADABLE as error:
        raise ValueError(
            f"{path}: not a posterior saved by this version of softcvi, or damaged "
            f"({error}). Save it again with posterior.save(path)."
        ) from error
