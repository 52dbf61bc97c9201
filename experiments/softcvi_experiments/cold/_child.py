"""One cold run in a process of its own, started by path.

The report is a line of JSON on standard output. What the benchmark itself needs, such
as reading the data, is set apart as ``seconds_setup``.
"""

import time

_BEGAN = time.perf_counter()

import functools  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

_QUICK_STEPS = 20
_QUICK_CHAIN = 10


def _problem(watch: Any, name: str) -> Any:
    """The model, whose data and imports are the benchmark's own."""
    import jax

    jax.devices()  # starting the device is part of every cold run
    began = time.perf_counter()
    from softcvi_experiments.cold._problems import get_problem

    problem = get_problem(name)
    watch.setup(time.perf_counter() - began)
    return problem


def _watch() -> Any:
    """Begin to watch; the interpreter has just imported what the run needs."""
    ready = time.perf_counter()
    from softcvi_experiments.cold._watch import Watch

    watch = Watch(_BEGAN + time.perf_counter() - ready)
    watch.setup(time.perf_counter() - ready)
    return watch


def _ours(method: str, name: str, seed: int, quick: bool) -> dict[str, Any]:
    import jax
    import numpyro  # noqa: F401  users have written their model with it

    import softcvi
    from softcvi.adapters import from_numpyro

    call = getattr(softcvi, method)
    watch = _watch()
    problem = _problem(watch, name)
    steps: dict[str, Any] = {"steps": _QUICK_STEPS} if quick else {}
    target = from_numpyro(problem.model, *problem.args, **problem.kwargs)
    result = call(jax.random.key(seed), target, progress=False, **steps)
    result.summary()
    return {**watch.report(), **_answer(result)}


def _answer(result: Any) -> dict[str, Any]:
    fitted = getattr(result, "result", result)
    watched = ("seconds_start", "seconds_compile", "seconds_run")
    return {
        "trusted": bool(result.verdict.trusted),
        "verdict": str(result.verdict),
        "choice": fitted.choices.get("guide", ""),
        "parts": {word: getattr(fitted, word, None) for word in watched},
    }


def _second(name: str, seed: int, quick: bool) -> dict[str, Any]:
    """A second model of the same shapes in one process: other data, other seed."""
    import jax
    import numpyro  # noqa: F401

    import softcvi
    from softcvi.adapters import from_numpyro

    _ = softcvi.fit
    watch = _watch()
    problem = _problem(watch, name)
    steps: dict[str, Any] = {"steps": _QUICK_STEPS} if quick else {}

    def whole(args: tuple, number: int) -> Any:
        target = from_numpyro(problem.model, *args, **problem.kwargs)
        key = jax.random.key(seed + number)
        result = softcvi.fit(key, target, progress=False, **steps)
        result.summary()
        return result

    whole(problem.args, 0)
    others = problem.moved_args()
    watch.forget()
    began = time.perf_counter()
    result = whole(others, 1)
    seconds = time.perf_counter() - began
    return {**watch.report(), **_answer(result), "seconds_second": seconds}


def _nuts(parallel: bool, name: str, seed: int, quick: bool) -> dict[str, Any]:
    import numpyro

    if parallel:
        numpyro.set_host_device_count(4)
    import jax
    from numpyro.infer import MCMC, NUTS

    _ = MCMC, NUTS
    watch = _watch()
    problem = _problem(watch, name)
    began = time.perf_counter()
    from softcvi_experiments.nuts import sample_model

    watch.setup(time.perf_counter() - began)
    size = _QUICK_CHAIN if quick else 1_000
    run = sample_model(
        jax.random.key(seed), problem.model, problem.args, problem.kwargs,
        warmup=size, samples=size, parallel=parallel,
    )  # fmt: skip
    return {**watch.report(), "trusted": run.trusted, "verdict": str(run)}


def _floor(name: str, seed: int, quick: bool) -> dict[str, Any]:
    """The least that XLA needs: gradients of the same model in one bare program."""
    import jax
    import numpyro.infer  # noqa: F401

    watch = _watch()
    problem = _problem(watch, name)
    from softcvi_experiments.cold._floor import bare_fit

    steps = _QUICK_STEPS if quick else 10_000
    bare_fit(jax.random.key(seed), problem.model, problem.args, problem.kwargs, steps)
    return {**watch.report(), "trusted": None, "verdict": ""}


RUNS: dict[str, Callable[[str, int, bool], dict[str, Any]]] = {
    "fit": functools.partial(_ours, "fit"),
    "fit_until": functools.partial(_ours, "fit_until"),
    "fit_warm": functools.partial(_ours, "fit"),
    "fit_second": _second,
    "nuts_parallel": functools.partial(_nuts, True),
    "nuts_vectorized": functools.partial(_nuts, False),
    "floor": _floor,
    "floor_warm": _floor,
}


def main() -> None:
    """Run the method named on the command line and print its report."""
    method, name, seed, quick = sys.argv[1:]
    report = RUNS[method](name, int(seed), bool(int(quick)))
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
