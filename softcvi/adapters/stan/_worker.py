"""A process that evaluates one compiled Stan program; run as a script.

Stan's own code keeps a tape per thread and crashes on threads it does not know, such
as those from which JAX calls back. In a process of its own it runs on the main thread.
This file is run by path and imports nothing of softcvi, so that it starts quickly.

Requests and answers are a line of JSON, followed by doubles if it names a shape.
"""

import json
import sys
from typing import IO, Any

import numpy as np


def send(stream: IO[bytes], facts: dict[str, Any], values: Any = None) -> None:
    """Write one message."""
    if values is not None:
        values = np.ascontiguousarray(values, np.float64)
        facts = {**facts, "shape": values.shape}
    stream.write(json.dumps(facts).encode() + b"\n")
    if values is not None:
        stream.write(values.tobytes())
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any] | None, Any]:
    """Read one message: its facts (None at the end) and its values."""
    line = stream.readline()
    if not line:
        return None, None
    facts = json.loads(line)
    if "shape" not in facts:
        return facts, None
    count = int(np.prod(facts["shape"]))
    values = np.frombuffer(stream.read(8 * count), np.float64)
    return facts, values.reshape(facts["shape"])


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until the other side goes away."""
    import httpstan.models

    facts, _ = receive(requests)
    assert facts is not None
    module = httpstan.models.import_services_extension_module(facts["model_name"])
    data = facts["data"]
    size = unconstrained_size(module, data)
    described = {
        "names": module.get_param_names(data),
        "dims": module.get_dims(data),
        "size": size,
        "total": len(module.write_array(data, [0.0] * size, True, False)),
    }
    send(answers, described)
    operations = {
        "log_prob": lambda row: log_prob(module, data, row),
        "constrain": lambda row: module.write_array(data, row, True, False),
    }
    while True:
        facts, rows = receive(requests)
        if facts is None:
            return
        try:
            values = [operations[facts["operation"]](row.tolist()) for row in rows]
        except Exception as error:
            send(answers, {"error": f"{type(error).__name__}: {error}"})
        else:
            send(answers, {}, values)


def log_prob(module: Any, data: dict[str, Any], row: list[float]) -> float:
    """Log density with its Jacobian; Stan rejects a point by a domain error."""
    try:
        return module.log_prob(data, row, True)
    except ValueError:
        return -np.inf


def unconstrained_size(module: Any, data: dict[str, Any]) -> int:
    """Stan says how many numbers it needs only by refusing too few of them."""
    size = 0
    while True:
        try:
            module.write_array(data, [0.0] * size, False, False)
        except (IndexError, RuntimeError, ValueError):
            size += 1
            if size > 100_000:
                raise
        else:
            return size


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
