"""Seeded damage to files: bytes, lengths, JSON and zip archives."""

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

Rng = np.random.Generator
Damage = Callable[[Rng, bytes], bytes]
_JSON_CHARACTERS = b'0123456789{}[]",:-+.eEaefnrstulINy\\ \n'
_ODD_NUMBERS = (-1, 0, 1, 2**31, 2**63, 10**30, -(2**40), 1e308, -0.0, 400_000_000)
_ODD_VALUES: tuple[Any, ...] = (
    *_ODD_NUMBERS, None, True, "", "x" * 1000, [], {}, [[]], {"array": 0}, "NaN",
    "__import__", {"function": "os.system"}, {"object": "builtins.eval", "fields": {}},
)  # fmt: skip


class _Touch:
    """Unpickled, it makes a file."""

    def __init__(self, path: str):
        self.path = path

    def __reduce__(self) -> tuple:
        return open, (self.path, "w")


def payloads(canary: str) -> list[bytes]:
    """Texts and bytes that make a file if a reader runs what it reads."""
    return [
        pickle.dumps(_Touch(canary)),
        f"!!python/object/apply:builtins.open ['{canary}', 'w']\n".encode(),
        f"__import__('builtins').open('{canary}', 'w')".encode(),
        f"system(\"touch '{canary}'\")".encode(),
    ]


def mutated(seed: int, content: bytes, canary: str) -> bytes:
    """A damaged copy, the same for the same seed.

    Args:
        seed: Which of the copies.
        content: The file as it should be.
        canary: A file that exists only if something was executed.

    Example:
        >>> mutated(0, b"content", "canary") == mutated(0, b"content", "canary")
        True
    """
    rng = np.random.default_rng(seed)
    ways: list[Damage] = [_flip, _flip, _truncate, _cut, _repeat, _insert, _lengths]
    if zipfile.is_zipfile(io.BytesIO(content)):
        ways += [_in_zip] * 5
    elif content.lstrip()[:1] in (b"{", b"["):
        ways += [_in_json] * 5
    else:
        ways += [_in_text] * 4
    way = ways[int(rng.integers(len(ways)))]
    if rng.random() < 0.05:
        known = payloads(canary)
        return _splice(rng, content, known[int(rng.integers(len(known)))])
    return way(rng, content)


def _position(rng: Rng, data: bytes) -> int:
    return int(rng.integers(len(data) + 1))


def _flip(rng: Rng, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 9)) if out else 0):
        out[int(rng.integers(len(out)))] = int(rng.integers(256))
    return bytes(out)


def _truncate(rng: Rng, data: bytes) -> bytes:
    return data[: _position(rng, data)]


def _cut(rng: Rng, data: bytes) -> bytes:
    first, last = sorted((_position(rng, data), _position(rng, data)))
    return data[:first] + data[last:]


def _repeat(rng: Rng, data: bytes) -> bytes:
    first, last = sorted((_position(rng, data), _position(rng, data)))
    return data[:last] + data[first:]


def _insert(rng: Rng, data: bytes) -> bytes:
    return _splice(rng, data, rng.bytes(int(rng.integers(1, 64))))


def _splice(rng: Rng, data: bytes, part: bytes) -> bytes:
    at = _position(rng, data)
    return data[:at] + part + data[at:]


def _lengths(rng: Rng, data: bytes) -> bytes:
    """Four or eight bytes as a large number, as lengths in binary headers are."""
    out, at = bytearray(data), _position(rng, data)
    large = int(rng.choice([0, 1, 2**16, 2**31 - 1, 2**32 - 1]))
    word = struct.pack("<I", large) if rng.random() < 0.7 else struct.pack("<Q", large)
    out[at : at + len(word)] = word
    return bytes(out)


def _in_text(rng: Rng, data: bytes) -> bytes:
    """A word or number of a text in another's place, or characters of JSON and YAML."""
    words = data.split()
    if rng.random() < 0.5 and words:
        old = words[int(rng.integers(len(words)))]
        new: Any = _ODD_VALUES[int(rng.integers(len(_ODD_VALUES)))]
        text = new if isinstance(new, str) else json.dumps(new)
        return data.replace(old, text.encode(), 1)
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 6)) if out else 0):
        out[int(rng.integers(len(out)))] = int(rng.choice(list(_JSON_CHARACTERS)))
    return bytes(out)


def _in_json(rng: Rng, data: bytes) -> bytes:
    """One value of a JSON text removed, repeated deeply or made another."""
    try:
        value = json.loads(data)
    except ValueError:
        return _in_text(rng, data)
    if rng.random() < 0.03:
        return data[:20] + b"[" * 200_000
    places = list(_places(value))
    if not places:
        return _in_text(rng, data)
    box, key = places[int(rng.integers(len(places)))]
    if rng.random() < 0.2:
        del box[key]
    else:
        box[key] = _ODD_VALUES[int(rng.integers(len(_ODD_VALUES)))]
    return json.dumps(value).encode()


def _places(value: Any):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


def _in_zip(rng: Rng, data: bytes) -> bytes:
    """An archive that is whole, with one damaged, missing, doubled or vast member."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(i.filename, archive.read(i)) for i in archive.infolist()]
    except Exception:
        return _flip(rng, data)
    at = int(rng.integers(len(members))) if members else 0
    kind = rng.random()
    if members and kind < 0.7:
        name, content = members[at]
        inner: Damage = _in_npy if name.endswith(".npy") else _inside
        members[at] = (name, inner(rng, content))
    elif members and kind < 0.8:
        del members[at]
    elif members and kind < 0.82:
        members[at] = (members[at][0], bytes(2**27))
    else:
        members.append(("../../outside", b"outside"))
    # What compresses well is packed, as bombs are.
    is_vast = any(len(content) > 2**24 for _, content in members)
    how = zipfile.ZIP_DEFLATED if is_vast else zipfile.ZIP_STORED
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", how) as archive:
        for name, content in members:
            # Without the time of day, so that a seed gives the same bytes.
            info = zipfile.ZipInfo(name)
            info.compress_type = how
            archive.writestr(info, content)
    return buffer.getvalue()


def _inside(rng: Rng, data: bytes) -> bytes:
    if zipfile.is_zipfile(io.BytesIO(data)):
        return _in_zip(rng, data)
    return _in_json(rng, data) if data[:1] in (b"{", b"[") else _flip(rng, data)


def _in_npy(rng: Rng, data: bytes) -> bytes:
    """Another shape or kind in the header of an array."""
    shapes = ["(400000000,)", "(-1,)", "()", "(1, 2, 3)", "(0,)", "(1e9,)", "(2,", "x"]
    kinds = ["|O", "<f2", "<c16", "<U9999", "|V9", ">f8", "<M8[ns]", "|b1"]
    if rng.random() < 0.5:
        new = rng.choice(shapes).encode()
        first, last = data.find(b"'shape': "), data.find(b"}")
        return data[: first + 9] + new + data[last:] if first > 0 else _flip(rng, data)
    first = data.find(b"'descr': '")
    last = data.find(b"'", first + 10)
    new = rng.choice(kinds).encode()
    return data[: first + 10] + new + data[last:] if first > 0 else _flip(rng, data)
