"""Our side of the process that evaluates a compiled Stan program."""

import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import IO, Any

import numpy as np

from softcvi.adapters.stan import _worker as _stan_worker


class StanProcess:
    """Evaluates rows of unconstrained parameters in another process.

    Args:
        model_name: Name under which httpstan keeps the compiled program.
        data: Its data, as JSON types.
    """

    def __init__(self, model_name: str, data: dict[str, Any]):
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(Path(_stan_worker.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests: IO[bytes] = self._process.stdin
        self._answers: IO[bytes] = self._process.stdout
        self._lock = threading.Lock()
        weakref.finalize(self, _stop, self._process, self._requests, self._answers)
        _stan_worker.send(self._requests, {"model_name": model_name, "data": data})
        self.facts, _ = self._receive()

    def log_prob(self, rows: np.ndarray) -> np.ndarray:
        """Log densities, Jacobian included; minus infinity where Stan rejects."""
        return self._ask("log_prob", rows)

    def constrain(self, rows: np.ndarray) -> np.ndarray:
        """Parameters and transformed parameters in the model's own coordinates."""
        return self._ask("constrain", rows)

    def _ask(self, operation: str, rows: np.ndarray) -> np.ndarray:
        with self._lock:
            _stan_worker.send(self._requests, {"operation": operation}, rows)
            _, values = self._receive()
        return values

    def _receive(self) -> tuple[dict[str, Any], Any]:
        facts, values = _stan_worker.receive(self._answers)
        if facts is None:
            raise RuntimeError(
                "program: the process that evaluates the Stan program ended with code "
                f"{self._process.wait()}; its last words are above. Is the data "
                "complete, and does the program run in Stan itself?"
            )
        if "error" in facts:
            raise RuntimeError(f"program: Stan failed: {facts['error']}")
        return facts, values


def _stop(process: subprocess.Popen, *pipes: IO[bytes]) -> None:
    for pipe in pipes:
        pipe.close()
    process.wait(timeout=5)
