"""A program compiled with our own C interface, loaded into this process."""

import ctypes
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from softcvi.adapters.stan._program import AbstractProgram, Rows, as_rejected

_MESSAGE_SIZE = 8_192
# Starting a thread takes some 20 microseconds; below this a batch is not worth it.
_WORTH_THREADS = 5e-4
# Nanoseconds, of programs with 4 to 1,000 parameters: of a call, of a node of the tape,
# of one without a derivative of its own, of a call by a solver, and of a number in the
# data, which may leave no node. Matrices are many of the second, and what is done with
# them takes more than their number.
_CALL, _NODE, _NUMBER, _SOLVER, _DATUM = 2_000, 20, 10, 500, 20
_MATRICES = 0.25
# A gradient takes about as long as so many values.
_GRADIENT = 3
# Points at which the nodes are counted.
_COUNTED = 8


class Library(AbstractProgram):
    """Evaluates a shared library built by ``build``.

    Args:
        path: The shared library.
        data: Data of the program, as JSON text.
        seed: Seed of random transformed data.
    """

    def __init__(self, path: Path, data: str, seed: int = 0):
        self._lib = _declared(ctypes.CDLL(str(path)))
        message = ctypes.create_string_buffer(_MESSAGE_SIZE)
        self._handle = self._lib.softcvi_open(
            data.encode(), seed, message, _MESSAGE_SIZE
        )
        if not self._handle:
            raise ValueError(f"data: Stan refused them: {_text(message)}")
        self.size = int(self._lib.softcvi_size(self._handle))
        blocks = self._lib.softcvi_names(self._handle).decode().split("\n")[:3]
        first, second, third = (tuple(block.split()) for block in blocks)
        self.names = (first, second, third)
        self.rejections = 0
        self._lock = threading.Lock()
        self._seconds_per_row = 0.0
        self._threads = _usable_cores()
        # In JSON a comma stands between two numbers.
        self.operations = self._counted(data.count(","))

    def __del__(self):
        if vars(self).get("_handle"):
            self._lib.softcvi_close(self._handle)

    @property
    def last_rejection(self) -> str:  # type: ignore[override]
        message = ctypes.create_string_buffer(_MESSAGE_SIZE)
        self._lib.softcvi_message(self._handle, message, _MESSAGE_SIZE)
        return _text(message)

    def log_density(self, rows: Rows) -> np.ndarray:
        rows = self._checked(rows)
        values = np.empty(len(rows))
        self._evaluate(rows, values, None)
        return values

    def log_density_and_gradient(self, rows: Rows) -> tuple[np.ndarray, Rows]:
        rows = self._checked(rows)
        values, gradients = np.empty(len(rows)), np.empty_like(rows)
        self._evaluate(rows, values, gradients)
        return values, gradients

    def constrain(self, rows: Rows, seeds: np.ndarray) -> np.ndarray:
        rows = self._checked(rows)
        seeds = np.ascontiguousarray(seeds, np.uint64)
        width = sum(len(block) for block in self.names)
        out = np.empty((len(rows), width))
        self._lib.softcvi_constrain(
            self._handle,
            len(rows),
            _pointer(rows),
            seeds.ctypes.data_as(ctypes.POINTER(ctypes.c_uint64)),
            _pointer(out),
            width,
            self._num_threads(len(rows)),
        )
        return out

    def unconstrain(self, parameters: np.ndarray) -> Rows:
        parameters = np.ascontiguousarray(parameters, np.float64)
        rows, width = parameters.shape
        out = np.empty((rows, self.size))
        self._lib.softcvi_unconstrain(
            self._handle, rows, _pointer(parameters), width, _pointer(out)
        )
        return out

    def _counted(self, size_of_data: int) -> int | None:
        """Operations of a log density, the most at a few points that Stan accepts."""
        rows = np.random.default_rng(0).uniform(-1, 1, (_COUNTED, self.size))
        found = []
        for row in rows:
            counts = np.zeros(3)
            row = np.ascontiguousarray(row)
            if not self._lib.softcvi_work(
                self._handle, _pointer(row), _pointer(counts)
            ):
                nodes, numbers, calls = counts.tolist()
                found.append(_operations(nodes, numbers, calls, size_of_data))
        return max(found, default=None)

    def _evaluate(self, rows: Rows, values, gradients) -> None:
        began = time.perf_counter()
        threads = self._num_threads(len(rows))
        rejected = self._lib.softcvi_log_density(
            self._handle,
            len(rows),
            _pointer(rows),
            _pointer(values),
            None if gradients is None else _pointer(gradients),
            threads,
        )
        seconds = (time.perf_counter() - began) * threads / max(len(rows), 1)
        rejected += as_rejected(values, gradients)
        with self._lock:
            self.rejections += int(rejected)
            self._seconds_per_row = 0.9 * self._seconds_per_row + 0.1 * seconds

    def _num_threads(self, rows: int) -> int:
        worth = int(rows * self._seconds_per_row / _WORTH_THREADS)
        return max(1, min(worth, self._threads, rows))

    def _checked(self, rows: Rows) -> Rows:
        rows = np.ascontiguousarray(rows, np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.size:
            raise ValueError(
                f"rows: shape (n, {self.size}) needed; got {np.shape(rows)}."
            )
        return rows


def _operations(nodes: float, numbers: float, calls: float, data: int) -> int:
    """What a value takes, from what a gradient leaves on the tape.

    Example:
        >>> _operations(64, 25, 0, 120)
        1987
    """
    gradient = _CALL + _NODE * nodes + _NUMBER * numbers + _SOLVER * calls
    gradient += _DATUM * data
    return int((gradient + _MATRICES * numbers**1.5) / _GRADIENT)


def _usable_cores() -> int:
    # Not os.cpu_count(): a container or a scheduler may allow fewer.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _pointer(array: np.ndarray):
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def _text(buffer) -> str:
    return buffer.value.decode(errors="replace").strip()


def _declared(lib: ctypes.CDLL) -> ctypes.CDLL:
    """The library with argument types, without which pointers lose their upper half."""
    size, double = ctypes.c_size_t, ctypes.POINTER(ctypes.c_double)
    handle, text = ctypes.c_void_p, ctypes.c_char_p
    seeds = ctypes.POINTER(ctypes.c_uint64)
    declarations: dict[str, tuple[Any, list[Any]]] = {
        "softcvi_open": (handle, [text, ctypes.c_uint, text, size]),
        "softcvi_close": (None, [handle]),
        "softcvi_size": (size, [handle]),
        "softcvi_names": (text, [handle]),
        "softcvi_message": (None, [handle, text, size]),
        "softcvi_log_density": (
            ctypes.c_int64,
            [handle, size, double, double, double, size],
        ),
        "softcvi_work": (ctypes.c_int, [handle, double, double]),
        "softcvi_constrain": (
            ctypes.c_int64,
            [handle, size, double, seeds, double, size, size],
        ),
        "softcvi_unconstrain": (
            ctypes.c_int64,
            [handle, size, double, size, double],
        ),
    }
    for name, (result, arguments) in declarations.items():
        function = lib[name]
        function.restype = result
        function.argtypes = arguments
        setattr(lib, name, function)
    return lib
