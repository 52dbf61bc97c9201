"""One measurement in a process of its own, started by path.

The report is a line of JSON on standard output. Reading the data and importing the
benchmarks themselves is set apart as ``seconds_setup``.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

# With 4,000 draws k-hat is uncertain by 0.1; with these by a third of that.
_CHECK_DRAWS = 64_000


def _nothing() -> dict[str, Any]:
    return {}


def _first_step(task: str) -> dict[str, Any]:
    """Seconds from the end of the import to the end of the first step."""
    import jax

    import softcvi

    began = time.perf_counter()
    softcvi.enable_compilation_cache()
    counted = time.perf_counter() - began
    from softcvi_experiments.bench._overhead import paper_problem

    target, guide, optimizer = paper_problem(task)
    ready = time.perf_counter()
    result = softcvi.fit(
        jax.random.key(0), target, guide, steps=1, optimizer=optimizer, start=None,
        progress=False,
    )  # fmt: skip
    return {
        "seconds_setup": ready - began - counted,
        "seconds_compile": result.seconds_compile,
        "seconds_to_first_step": counted + time.perf_counter() - ready,
    }


def _trusted(task: str, way: str, seed: str, quick: str) -> dict[str, Any]:
    import jax

    import softcvi

    fit_key, check_key = jax.random.split(jax.random.key(int(seed)))
    settings: dict[str, Any] = {"steps": 20} if int(quick) else {}
    began = time.perf_counter()
    if way == "paper":
        from softcvi_experiments.bench._overhead import paper_problem

        target, guide, _ = paper_problem(task)
        setup = time.perf_counter() - began
        result = softcvi.fit(fit_key, target, guide, progress=False, **settings)
        chain, name = None, result.choices.get("guide")
    else:
        from softcvi.adapters import from_numpyro
        from softcvi_experiments.bench._problems import get_problem

        problem = get_problem(task)
        setup = time.perf_counter() - began
        target = from_numpyro(problem.model, *problem.args)
        answer = softcvi.fit_until(fit_key, target, progress=False, **settings)
        result, chain, name = answer.result, answer.chain, answer.best.name
    told = float(result.khat)  # what the user looks at; the check that follows is ours
    if chain is None:
        judged = time.perf_counter()
        sample = result.posterior.importance(check_key, _CHECK_DRAWS)
        checks = {"khat": float(sample.khat)}
        setup += time.perf_counter() - judged
    else:
        found = chain.evidence
        checks = {
            "rhat": found.rhat,
            "ess": found.ess,
            "divergent": found.divergences,
            "draws": found.num_draws,
        }
    return {"checks": checks, "told": told, "guide": name, "seconds_setup": setup}


def _nuts(task: str, method: str, seed: str, quick: str) -> dict[str, Any]:
    import numpyro

    if method == "parallel":
        numpyro.set_host_device_count(4)
    import jax

    began = time.perf_counter()
    from softcvi_experiments.bench._problems import get_problem
    from softcvi_experiments.nuts import sample_model

    problem = get_problem(task)
    setup = time.perf_counter() - began
    size = 10 if int(quick) else 1_000
    run = sample_model(
        jax.random.key(int(seed)), problem.model, problem.args, warmup=size,
        samples=size, parallel=method == "parallel",
    )  # fmt: skip
    return {"checks": run.checks, "seconds_setup": setup}


def _memory(what: str, size: str) -> dict[str, Any]:
    from softcvi_experiments.bench._memory import use_memory

    return use_memory(what, int(size))


MEASUREMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    "nothing": _nothing,
    "first_step": _first_step,
    "trusted": _trusted,
    "nuts": _nuts,
    "memory": _memory,
}


def main() -> None:
    """Run the measurement named on the command line and print its report."""
    what, *args = sys.argv[1:]
    report = MEASUREMENTS[what](*args)
    print(json.dumps({"what": what, **report}), flush=True)


if __name__ == "__main__":
    main()
