"""What is run on a posterior: the program's calls, the ELBO, NUTS and long chains."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import softcvi
from softcvi.fitting import TimeLimit
from softcvi.starts import Explore, InBestSpace, suggest
from softcvi_experiments.large._chains import whitened_chain
from softcvi_experiments.large._moments import Moments
from softcvi_experiments.large._posterior import LargePosterior
from softcvi_experiments.nuts import Chains

_DRAWS, _PARTS = 4_000, 8
# What a method may take beside the reference; the ladder's own default is 600.
_BUDGET = 180.0


class Run(NamedTuple):
    """What a method gave.

    Attributes:
        name: Name of the method.
        facts: Numbers and words for the record.
        moments: Moments of its draws; None if it has none.
    """

    name: str
    facts: dict[str, Any]
    moments: Moments | None


class Setting(NamedTuple):
    """What a method is told beside the posterior.

    Attributes:
        small: Whether the posterior is the small form: short chains will do.
        seconds_of_fit: What ``fit`` took on it.
    """

    small: bool
    seconds_of_fit: float


def fit(key, posterior: LargePosterior, setting: Setting) -> list[Run]:
    """``softcvi.fit`` at defaults."""
    began = time.perf_counter()
    result = softcvi.fit(key, posterior.target, progress=False, throw=False)
    return [_answer("fit", result, posterior, began)]


def elbo(key, posterior: LargePosterior, setting: Setting) -> list[Run]:
    """The ELBO with the guide that ``fit`` takes, from the same start and as long."""
    began = time.perf_counter()
    report = InBestSpace(Explore()).find(key, posterior.target)
    choice = suggest(key, report)[0]
    left = setting.seconds_of_fit - (time.perf_counter() - began)
    result = softcvi.fit(
        key,
        report.target,
        choice.guide,
        objective=softcvi.ELBO(),
        start=None,
        stopping=TimeLimit(max(left, 1.0)),
        progress=False,
        throw=False,
    )
    return [_answer("elbo", result, posterior, began)]


def fit_until(key, posterior: LargePosterior, setting: Setting) -> list[Run]:
    """``softcvi.fit_until`` at defaults, with a smaller budget than its own."""
    began = time.perf_counter()
    answer = softcvi.fit_until(key, posterior.target, budget=_BUDGET, progress=False)
    return [_answer("fit_until", answer, posterior, began)]


def guides(key, posterior: LargePosterior, setting: Setting) -> list[Run]:
    """Guides and objectives that the posterior names, without a start."""
    runs = []
    for name, make in posterior.guides.items():
        began = time.perf_counter()
        guide, objective = make(posterior.target)
        result = softcvi.fit(
            key,
            posterior.target,
            guide,
            objective=objective,
            start=None,
            steps=200 if setting.small else 10_000,
            progress=False,
            throw=False,
        )
        runs.append(_answer(name, result, posterior, began))
    return runs


def _answer(name: str, result, posterior: LargePosterior, began: float) -> Run:
    verdict = result.verdict
    seconds = time.perf_counter() - began
    moments = Moments.of(_parts(result, posterior))
    weights = verdict.evidence.weights
    facts = {
        "seconds": seconds,
        "trusted": bool(verdict.trusted),
        "level": verdict.level,
        "reasons": list(verdict.reasons),
        "seconds_start": result.seconds_start,
        "seconds_compile": result.seconds_compile,
        "seconds_run": result.seconds_run,
        "choices": dict(result.choices),
        "log_evidence": None if weights is None else weights.log_evidence,
        "khat": float(verdict.khat),
        "ess_share": float(verdict.ess_share),
        "elbo": _elbo(result),
        "label_ess": _last(result.history.label_ess),
    }
    return Run(name, facts, moments)


def _parts(result, posterior: LargePosterior) -> Iterator[dict[str, np.ndarray]]:
    for i in range(_PARTS):
        yield posterior.compared(result.sample(jax.random.key(1000 + i), _DRAWS))


def _elbo(result) -> float:
    sample = result.importance
    return float(np.mean(np.asarray(sample.log_p) - np.asarray(sample.log_q)))


def _last(values: np.ndarray) -> float | None:
    return float(values[-1]) if len(values) else None


def nuts(key, posterior: LargePosterior, setting: Setting) -> list[Run]:
    """NumPyro's NUTS at its defaults: 4 chains of 1,000 and 1,000."""
    length = 200 if setting.small else 1_000
    run = posterior.nuts(key, chains=4, warmup=length, samples=length)
    return [_of_chains("nuts", run, posterior)]


def reference(key, posterior: LargePosterior, setting: Setting) -> list[Run]:
    """Two long chains in the coordinates that suit them best."""
    if posterior.mean is not None:
        return []
    warmup, samples = (100, 200) if setting.small else (300, 1_200)
    if posterior.model is not None:
        run = posterior.nuts(key, chains=2, warmup=warmup, samples=samples)
        return [_of_chains("reference", run, posterior)]
    began = time.perf_counter()
    chain = whitened_chain(key, posterior.target, warmup=warmup, samples=samples)
    moments = Moments.of([posterior.compared(chain.draws)], chain.ess)
    facts = {
        "seconds": time.perf_counter() - began,
        "log_evidence": chain.log_evidence,
        "ess": chain.ess,
    }
    return [Run("reference", facts, moments)]


def _of_chains(name: str, run: Chains, posterior: LargePosterior) -> Run:
    moments = Moments.of([posterior.compared(run.draws)], run.ess)
    return Run(
        name,
        {
            "seconds": run.seconds,
            "trusted": run.trusted,
            "level": str(run),
            **run.checks,
        },
        moments,
    )


METHODS = {
    "reference": reference,
    "nuts": nuts,
    "fit_until": fit_until,
    "fit": fit,
    "elbo": elbo,
    "guides": guides,
}


def warm(key) -> None:
    """Start JAX, so that the first method is not charged for it."""
    jnp.sum(jax.random.normal(key, (2,))).block_until_ready()
