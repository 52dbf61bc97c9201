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
