"""What a process spends its time on: imports, tracing, lowering, compilation."""

import resource
import time

_EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}


class Watch:
    """Seconds by phase since the process began; paused time is in no phase.

    Example:
        >>> watch = Watch(0.0)
        >>> watch.setup(1.5)
        >>> sorted(watch.report())
        ['cpu', 'jax', 'phases', 'programs', 'seconds_setup']
    """

    def __init__(self, began: float) -> None:
        import jax

        self.phases = {"import": time.perf_counter() - began}
        self._spans: dict[str, list[tuple[float, float]]] = {
            phase: [] for phase in _EVENTS.values()
        }
        self._paused = 0.0
        jax.monitoring.register_event_duration_secs_listener(self._heard)

    def setup(self, seconds: float) -> None:
        """Time that the benchmark itself took, which no user waits for.

        Args:
            seconds: How long.
        """
        self._paused += seconds

    def forget(self) -> None:
        """Begin anew: what was compiled so far does not count."""
        for spans in self._spans.values():
            spans.clear()

    def report(self) -> dict:
        """Seconds by phase and of JAX's phases together, programs, CPU seconds."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = {phase: _covered(spans) for phase, spans in self._spans.items()}
        return {
            "phases": {**self.phases, **seconds},
            "jax": _covered([s for spans in self._spans.values() for s in spans]),
            "programs": len(self._spans["compile"]),
            "cpu": used.ru_utime + used.ru_stime,
            "seconds_setup": self._paused,
        }

    def _heard(self, event: str, seconds: float, **_: object) -> None:
        if event in _EVENTS:
            now = time.perf_counter()
            self._spans[_EVENTS[event]].append((now - seconds, now))


def _covered(spans: list[tuple[float, float]]) -> float:
    """Length of the union of intervals: a function traces those that it calls."""
    total, end = 0.0, -float("inf")
    for first, last in sorted(spans):
        total += max(0.0, last - max(first, end))
        end = max(end, last)
    return total
