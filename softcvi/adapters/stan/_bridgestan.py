"""Programs evaluated by BridgeStan."""

import zlib
from typing import Any

import numpy as np

from softcvi.adapters.stan._program import AbstractProgram, Rows, as_rejected


class BridgeStanProgram(AbstractProgram):
    """A ``bridgestan.StanModel``, called row by row.

    Args:
        model: The model, or anything with its methods.
    """

    def __init__(self, model: Any):
        self._model = model
        self.size = int(model.param_unc_num())
        counts, listed = [0], []
        for wanted in ({}, {"include_tp": True}, {"include_tp": True, "include_gq": 1}):
            names = model.param_names(**{k: bool(v) for k, v in wanted.items()})
            listed.append(tuple(names[counts[-1] :]))
            counts.append(len(names))
        self.names = (listed[0], listed[1], listed[2])
        self.rejections = 0
        self.last_rejection = ""

    def log_density(self, rows: Rows) -> np.ndarray:
        values = np.full(len(rows), -np.inf)
        for i, row in enumerate(_contiguous(rows)):
            try:
                value = self._model.log_density(row, propto=False, jacobian=True)
            except RuntimeError as error:
                self._note(error)
            else:
                values[i] = self._or_rejected(value)
        self.rejections += as_rejected(values, None)
        return values

    def log_density_and_gradient(self, rows: Rows) -> tuple[np.ndarray, Rows]:
        rows = _contiguous(rows)
        values, gradients = np.full(len(rows), -np.inf), np.zeros_like(rows)
        for i, row in enumerate(rows):
            try:
                value, gradient = self._model.log_density_gradient(
                    row, propto=False, jacobian=True
                )
            except RuntimeError as error:
                self._note(error)
            else:
                values[i] = self._or_rejected(value)
                if not np.isneginf(values[i]):
                    gradients[i] = gradient
        self.rejections += as_rejected(values, gradients)
        return values, gradients

    def constrain(self, rows: Rows, seeds: np.ndarray) -> np.ndarray:
        rows = _contiguous(rows)
        out = np.full((len(rows), sum(map(len, self.names))), np.nan)
        for i, row in enumerate(rows):
            values = self._constrained(row, int(seeds[i]))
            out[i, : len(values)] = values
        return out

    def _constrained(self, row: np.ndarray, seed: int) -> np.ndarray:
        """All values, or those before the block of the program that fails."""
        failure: RuntimeError | None = None
        values = np.empty(0)
        for tp, gq in ((True, True), (True, False), (False, False)):
            include: dict[str, Any] = {"include_tp": tp, "include_gq": gq}
            if gq and self.names[2]:
                bits = zlib.crc32(row.tobytes(), seed & 0xFFFFFFFF)
                include["rng"] = self._model.new_rng(bits)
            try:
                values = self._model.param_constrain(row, **include)
                break
            except RuntimeError as error:
                failure = failure or error
        if failure is not None:
            self._note(failure)
        return values

    def unconstrain(self, parameters: np.ndarray) -> Rows:
        out = np.full((len(parameters), self.size), np.nan)
        for i, row in enumerate(_contiguous(parameters)):
            try:
                out[i] = self._model.param_unconstrain(row)
            except RuntimeError as error:
                self._note(error)
        return out

    def _or_rejected(self, value: float) -> float:
        if np.isnan(value):
            self._note("the log density is not a number")
            return -np.inf
        return value

    def _note(self, reason: Any) -> None:
        self.rejections += 1
        self.last_rejection = str(reason)


def _contiguous(rows: Rows) -> Rows:
    return np.ascontiguousarray(rows, np.float64)
