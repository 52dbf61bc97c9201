"""The worker of the study: runs one method on one posterior at a time."""

import functools
import time
from typing import Any

import jax

from softcvi_experiments.verdict._families import get_family
from softcvi_experiments.verdict._methods import METHODS, as_arrays
from softcvi_experiments.verdict._posterior import RandomPosterior

_FAR = 1e6


@functools.lru_cache(maxsize=4)
def _posterior(family: str, seed: int) -> RandomPosterior:
    return get_family(family).posterior(seed)


def run_case(**task: Any) -> dict[str, Any]:
    """Run a method and score it.

    Args:
        **task: ``family``, ``seed`` of the posterior, ``key`` of the run, ``method``.

    Example:
        >>> task = {"family": "banana", "seed": 0, "key": 0, "method": "fit"}
        >>> run_case(**task)["right"]  # doctest: +SKIP
        True
    """
    try:
        posterior = _posterior(task["family"], task["seed"])
        key = jax.random.fold_in(jax.random.key(task["key"]), task["seed"])
        began = time.perf_counter()
        answer = METHODS[task["method"]](key, posterior.target)
        draws = as_arrays(answer.draws)
        seconds = time.perf_counter() - began
        score = posterior.score(draws)
    except NotImplementedError as error:
        return {"status": "not applicable", "message": str(error)}
    return {
        "parameters": posterior.num_parameters,
        "source": posterior.source,
        "trusted": answer.trusted,
        "level": answer.level,
        "right": score.right,
        "centre_error": _number(score.centre_error),
        "spread_ratio": _number(score.spread_ratio),
        "site": score.site,
        "seconds": round(seconds, 2),
        **answer.details,
    }


def _number(value: float) -> float:
    """A number that a record can hold; draws that are not finite are far off."""
    return round(min(value, _FAR), 4) if value == value else _FAR
