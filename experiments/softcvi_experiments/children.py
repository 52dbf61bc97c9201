"""Child processes: one measurement in a fresh one, or many tasks over several.

A worker is a function, named as ``module:function``, that takes a task as keyword
arguments and returns a result. Both are JSON objects, one per line.
"""

import importlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]
_MARK = "softcvi-result "
# Tasks after which a process is replaced, which bounds its memory.
_MAX_TASKS = 60
Task = dict[str, Any]


class ChildError(RuntimeError):
    """A child process failed; the message is the end of what it said."""


class ChildTimeout(ChildError):
    """A child process took too long."""


def failed_record(task: Task, error: ChildError) -> dict[str, Any]:
    """The record of a task without an answer.

    Args:
        task: The task.
        error: What ``run_tasks`` gave for it.

    Example:
        >>> failed_record({"seed": 0}, ChildTimeout("no answer within 9 s"))["status"]
        'timeout'
    """
    status = "timeout" if isinstance(error, ChildTimeout) else "error"
    return {**task, "status": status, "message": str(error)}


def error_record(error: Exception) -> dict[str, Any]:
    """What a worker says of a case that raised: one must not take the others down.

    Args:
        error: The error.

    Example:
        >>> error_record(ValueError("no such case"))["message"]
        'ValueError: no such case'
    """
    frames = traceback.extract_tb(error.__traceback__, limit=-3)
    return {
        "status": "error",
        "message": f"{type(error).__name__}: {error}"[:500],
        "where": [f"{Path(f.filename).name}:{f.lineno}" for f in frames],
    }


def environment(
    *, threads: int | None = None, cache: str | Path | None = None, x64: bool = False
) -> dict[str, str]:
    """Environment variables for a child.

    Args:
        threads: Threads that JAX and BLAS may use; 1, or None for all.
        cache: Folder of the compilation cache; None for no cache, so that times
            include compilation.
        x64: Whether JAX computes in double precision.

    Example:
        >>> environment(x64=True)["JAX_ENABLE_X64"]
        '1'
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION")}
    path = env.get("PYTHONPATH", "")
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_ROOT), path]))
    # Installed packages come with their bytecode: let this one keep its own, too.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    env["TF_CPP_MIN_LOG_LEVEL"] = "3"
    env["PYTHONWARNINGS"] = "ignore"
    env["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    if cache is None:
        env["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    else:
        env["JAX_ENABLE_COMPILATION_CACHE"] = "true"
        env["SOFTCVI_CACHE_DIR"] = str(cache)
        env["JAX_COMPILATION_CACHE_DIR"] = str(cache)
        env["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
        env["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "0"
    if threads == 1:
        flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        env["XLA_FLAGS"] = f"{env.get('XLA_FLAGS', '')} {flags}".strip()
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            env[name] = "1"
    if x64:
        env["JAX_ENABLE_X64"] = "1"
    return env


def run_child(
    script: str | Path,
    *args: Any,
    env: Mapping[str, str] | None = None,
    timeout: float = 1800.0,
) -> dict[str, Any]:
    """Measure something in a fresh interpreter.

    Args:
        script: Path of a Python file that prints one line of JSON.
        *args: Its arguments, passed as text.
        env: Its environment; ``environment()`` by default.
        timeout: Seconds to wait at most.

    Returns:
        What the child reported, with ``seconds_wall`` from its start to its report,
        less the ``seconds_setup`` that it says belong to the benchmark.

    Raises:
        ChildError: If the child fails, or takes too long.
    """
    began = time.perf_counter()
    # By path, since ``-m`` would import this package before the watch is looked at.
    child = subprocess.Popen(
        [sys.executable, str(script), *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(environment() if env is None else env),
    )
    watch = threading.Timer(timeout, child.kill)
    watch.start()
    try:
        # The report is one line; what comes after it (tearing down) does not count.
        line = child.stdout.readline() if child.stdout else ""
        wall = time.perf_counter() - began
        _, errors = child.communicate()
    except BaseException:
        child.kill()
        child.wait()
        raise
    finally:
        watch.cancel()
    if child.returncode != 0 or not line.strip():
        last = [text for text in errors.splitlines() if text.strip()][-1:]
        raise ChildError(f"{' '.join(map(str, args))}: {' '.join(last)}")
    report = json.loads(line)
    return {**report, "seconds_wall": wall - report.get("seconds_setup", 0.0)}


def answer(worker: Callable[..., Mapping[str, Any]], task: Task) -> dict[str, Any]:
    """What a worker says of a task; an error is told as well, in a record.

    Args:
        worker: The function that runs a task.
        task: Its arguments.

    Example:
        >>> answer(lambda n: {"half": n / 2}, {"n": 3})
        {'n': 3, 'status': 'ok', 'half': 1.5}
        >>> answer(lambda n: {"inverse": 1 / n}, {"n": 0})["status"]
        'error'
    """
    try:
        return {**task, "status": "ok", **worker(**task)}
    except Exception as error:
        return {**task, **error_record(error)}


def _serve(name: str) -> None:
    """Answer tasks from standard input until it ends."""
    module, _, function = name.partition(":")
    worker = getattr(importlib.import_module(module), function)
    for line in sys.stdin:
        print(_MARK + json.dumps(answer(worker, json.loads(line))), flush=True)


class _Child:
    """A child that runs one task at a time."""

    def __init__(self, worker: str, env: Mapping[str, str]) -> None:
        # Errors go to a file: a pipe that nobody reads would fill up.
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._child = subprocess.Popen(
            [sys.executable, "-m", __name__, worker],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=dict(env),
        )

    def run(self, task: Task, timeout: float) -> dict[str, Any]:
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self._child.kill()

        watch = threading.Timer(timeout, expire)
        watch.start()
        try:
            assert self._child.stdin is not None
            assert self._child.stdout is not None
            self._child.stdin.write(json.dumps(task) + "\n")
            self._child.stdin.flush()
            for line in self._child.stdout:
                if line.startswith(_MARK):
                    return json.loads(line[len(_MARK) :])
        except BrokenPipeError:
            pass  # the child has ended, for a reason that is told below
        finally:
            watch.cancel()
        if expired.is_set():
            raise ChildTimeout(f"no answer within {timeout:.0f} s")
        status = self._child.wait()
        raise ChildError(f"exit status {status}: {self._last_error()}")

    def _last_error(self) -> str:
        self._errors.seek(0)
        lines = [line for line in self._errors.read().splitlines() if line.strip()]
        return lines[-1] if lines else "no output"

    def close(self) -> None:
        self._child.kill()
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout, self._errors):
            if stream is not None:
                stream.close()


def run_tasks(
    worker: str,
    groups: Sequence[Sequence[Task]],
    *,
    jobs: int = 1,
    timeout: float = 1800.0,
    env: Mapping[str, str] | None = None,
    fresh: bool = False,
) -> Iterator[tuple[Task, dict[str, Any] | ChildError]]:
    """Run groups of tasks in child processes; yields each task with what it gave.

    The tasks of a group run one after the other in one process, and so share what it
    has compiled. A task that fails or takes too long loses its process only.

    Args:
        worker: Function that runs a task, as ``module:function``.
        groups: Tasks, by group.
        jobs: Processes at a time.
        timeout: Seconds for each task.
        env: Environment of the processes.
        fresh: Whether each group has a new process.
    """
    env = environment() if env is None else env
    waiting: queue.SimpleQueue[Sequence[Task]] = queue.SimpleQueue()
    for group in groups:
        waiting.put(group)
    done: queue.SimpleQueue = queue.SimpleQueue()
    stop = threading.Event()

    def work() -> None:
        child, count = None, 0
        try:
            while not stop.is_set():
                try:
                    group = waiting.get_nowait()
                except queue.Empty:
                    break
                if child is not None and (fresh or count >= _MAX_TASKS):
                    child.close()
                    child = None
                for task in group:
                    if stop.is_set():
                        break
                    if child is None:
                        child, count = _Child(worker, env), 0
                    count += 1
                    try:
                        done.put((task, child.run(task, timeout)))
                    except ChildError as error:
                        child.close()
                        child = None
                        done.put((task, error))
        except BaseException as error:
            done.put((None, error))
        finally:
            if child is not None:
                child.close()
            done.put(None)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    left = len(threads)
    try:
        while left:
            item = done.get()
            if item is None:
                left -= 1
            elif item[0] is None:
                raise item[1]
            else:
                yield item
    finally:
        stop.set()


if __name__ == "__main__":
    _serve(sys.argv[1])
