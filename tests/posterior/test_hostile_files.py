"""Hostile and damaged files: refused by name, and never larger than the file allows."""

import io
import json
import resource
import tracemalloc
import zipfile

import numpy as np
import pytest

import softcvi
from softcvi import Posterior, guides
from softcvi.targets import ModelSpace

LIKE = {"a": np.zeros(2, np.float32), "b": np.zeros((), np.float32)}
MUTATIONS = 300
# What a refused file may take beside its own size: parsers and messages.
ROOM = 64 * 2**20


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "fit.softcvi"
    Posterior(guides.full_rank(LIKE), space=ModelSpace()).save(path, seed=3)
    return path.read_bytes()


def parts_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return json.loads(archive.read("header.json")), archive.read("arrays.npz")


def packed(header, arrays, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        text = header if isinstance(header, str) else json.dumps(header)
        archive.writestr("header.json", text)
        archive.writestr("arrays.npz", arrays)
    return buffer.getvalue()


def npz(members, compression=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for i, member in enumerate(members):
            archive.writestr(f"a{i}.npy", member)
    return buffer.getvalue()


def npy_header(shape, dtype="<f4"):
    buffer = io.BytesIO()
    described = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, described)
    return buffer.getvalue()


def nested(depth):
    return '{"list":[' * depth + "1" + "]}" * depth


def bombs(content):
    header, arrays = parts_of(content)
    guide = header["parts"]["guide"]
    zeros = npy_header((2**29,)) + bytes(2**20)
    many = {**header, "parts": {"guide": {"list": [{"array": 0}] * 100_000}}}
    deep = json.dumps({**header, "parts": {"guide": 0}}).replace(
        '"guide": 0', '"guide": ' + nested(5000)
    )
    flow = {
        "rebuild": "softcvi.guides.CouplingFlow",
        "arguments": {"dict": {"dim": 2, "layers": 10**9}},
        "leaves": {"list": []},
    }
    wide = {**flow, "arguments": {"dict": {"dim": 2, "width": 50_000}}}
    return {
        "shape larger than its bytes": packed(header, npz([zeros] * 3)),
        "array that unpacks to gigabytes": packed(
            header, npz([npy_header((2**25,)) + bytes(2**27)])
        ),
        "compressed header": packed(
            json.dumps(header) + " " * 2**25, arrays, zipfile.ZIP_DEFLATED
        ),
        "one array many times": packed(many, arrays),
        "deep nesting": packed(deep, arrays),
        "negative shape": packed(header, npz([npy_header((-1,))] * 3)),
        "objects": packed(header, npz([npy_header((1,), "|O") + bytes(8)] * 3)),
        "many layers": packed({**header, "parts": {"guide": flow}}, arrays),
        "wide layers": packed({**header, "parts": {"guide": wide}}, arrays),
        "a guide that is a number": packed(
            {**header, "parts": {**header["parts"], "guide": 3}}, arrays
        ),
        "a guide without fields": packed(
            {**header, "parts": {**header["parts"], "guide": {**guide, "fields": {}}}},
            arrays,
        ),
        "another class in its place": packed(
            {
                **header,
                "parts": {
                    **header["parts"],
                    "guide": {
                        **guide,
                        "fields": {**guide["fields"], "__class__": None},
                    },
                },
            },
            arrays,
        ),
        "no parts": packed({"format": 2}, arrays),
        "a list": packed("[]", arrays),
        "not UTF-8": packed(header, arrays).replace(b"format", b"for\xff\xfet"),
    }


def test_bombs_are_refused_before_anything_is_allocated(content, tmp_path):
    path = tmp_path / "fit.softcvi"
    for name, bomb in bombs(content).items():
        path.write_bytes(bomb)
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match=r"fit\.softcvi: "):
                softcvi.load(path)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 20 * len(bomb) + ROOM, name


def mutated(rng, content):
    """One of the ways in which a file is damaged on purpose or by accident."""
    data = bytearray(content)
    kind = rng.integers(5)
    if kind == 0:
        for position in rng.integers(len(data), size=rng.integers(1, 9)):
            data[position] = rng.integers(256)
    elif kind == 1:
        del data[rng.integers(len(data)) :]
    elif kind == 2:
        first, second = np.sort(rng.integers(len(data), size=2))
        del data[first:second]
    elif kind == 3:
        at = rng.integers(len(data))
        data[at:at] = rng.bytes(int(rng.integers(1, 64)))
    else:
        header, arrays = parts_of(content)
        text = bytearray(json.dumps(header).encode())
        for position in rng.integers(len(text), size=rng.integers(1, 4)):
            text[position] = rng.choice(list(b'0123456789{}[]",:-aefnrstul'))
        return packed(text.decode(), arrays)
    return bytes(data)


def test_mutated_files_load_or_are_refused_by_name(content, tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "fit.softcvi"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    messages = []
    for _ in range(MUTATIONS):
        path.write_bytes(mutated(rng, content))
        try:
            softcvi.load(path)
        except ValueError as error:
            messages.append(str(error))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert len(messages) > 0.5 * MUTATIONS
    for message in messages:
        assert "fit.softcvi: " in message
        assert "posterior.save(path)" in message
    assert grown < 500_000  # kilobytes


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "fit.softcvi"
    posterior = Posterior(guides.mean_field(LIKE), space=ModelSpace())
    posterior.save(path)
    old = path.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=r"No space left on device.*fit\.softcvi"):
        posterior.save(path)
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["fit.softcvi"]


def test_files_name_public_things(content):
    header, _ = parts_of(content)
    text = json.dumps(header)
    assert '"softcvi.guides.VectorGuide"' in text
    assert "._" not in text
