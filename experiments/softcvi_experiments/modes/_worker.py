"""The worker of the study: one call on one case."""

import time
from typing import Any

import jax
import numpy as np

import softcvi
from softcvi_experiments.modes._cases import Case, get_case

NUM_DRAWS = 20_000
# A part counts as found if it has this share of its weight.
_FOUND = 0.5


def _fit(key, target):
    return softcvi.fit(key, target, progress=False, throw=False)


def _fit_until(key, target):
    return softcvi.fit_until(key, target, progress=False)


METHODS = {"fit": _fit, "fit_until": _fit_until}


def measures(case: Case, draws: np.ndarray) -> dict[str, Any]:
    """What draws say about each part of a mixture.

    Args:
        case: The mixture.
        draws: Draws along the first axis.

    Example:
        >>> case = get_case("two-normals", 4)
        >>> measures(case, np.zeros((100, 2)))["found"]
        1
    """
    shares = np.bincount(case.nearest(draws), minlength=len(case.weights)) / len(draws)
    # By the same rule that draws are given to parts, since parts may overlap.
    rng = np.random.default_rng(0)
    expected = _exact_shares(case, rng)
    held = shares[shares > 0]
    entropy = -np.sum(held * np.log(held))
    return {
        "parts": len(shares),
        "found": int(np.sum(shares > _FOUND * expected)),
        "weight_error": float(np.max(np.abs(shares - expected))),
        "entropy_share": float(entropy / np.log(len(shares))),
    }


def _exact_shares(case: Case, rng: np.random.Generator) -> np.ndarray:
    label = rng.choice(len(case.weights), NUM_DRAWS, p=case.weights)
    shape = NUM_DRAWS, case.means.shape[1]
    noise = (
        rng.normal(size=shape) if case.df is None else rng.standard_t(case.df, shape)
    )
    x = case.means[label] + case.scales[label, None] * noise
    return np.bincount(case.nearest(x), minlength=len(case.weights)) / NUM_DRAWS


def run_case(**task: Any) -> dict[str, Any]:
    """Run a method and measure it.

    Args:
        **task: ``case``, ``entry``, ``key`` and ``method``.

    Example:
        >>> task = {"case": "two-normals", "entry": 4, "key": 0, "method": "fit"}
        >>> run_case(**task)["found"]  # doctest: +SKIP
        2
    """
    case = get_case(task["case"], task["entry"])
    fit_key, draw_key = jax.random.split(jax.random.key(task["key"]))
    began = time.perf_counter()
    result = METHODS[task["method"]](fit_key, case.target)
    draws = np.asarray(result.sample(draw_key, NUM_DRAWS)["x"], np.float64)
    seconds = time.perf_counter() - began
    verdict = result.verdict
    search = verdict.evidence.search
    return {
        "parameters": int(case.means.shape[1]),
        **measures(case, draws),
        "ess_share": float(verdict.ess_share),
        "trusted": bool(verdict.trusted),
        "reasons": list(verdict.reasons),
        "smallest_feature": None if search is None else search.smallest_feature,
        "seconds": round(seconds, 2),
    }
