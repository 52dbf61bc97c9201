"""Better answers where that of a guide is not trusted: by its parts, or by chains."""

import dataclasses
import time
from collections.abc import Callable

import jax
import numpy as np

from softcvi._compile import host_key
from softcvi.diagnostics import Evidence, SamplerEvidence, judge
from softcvi.diagnostics._chain_draws import MET_RHAT, chains_from
from softcvi.fitting._compare import with_redrawn
from softcvi.fitting._interrupt import (
    CallbackFailure,
    callback_failures,
    first_line,
    interrupted,
)
from softcvi.fitting._result import FitResult
from softcvi.targets._cost import on_one_core

_SEED = 20_26


def by_other_means(
    result: FitResult, by_parts: Callable[[], FitResult | None]
) -> FitResult:
    """An answer that is not trusted, or a better one by its parts or by chains.

    Args:
        result: A fit with a guide of the program's own choice.
        by_parts: Fits each independent part, if there are any.
    """
    try:
        with callback_failures():
            parts = None if result.verdict.trusted else by_parts()
            if parts is not None:
                return better_of(result, parts)
            return corrected(result)
    except KeyboardInterrupt:
        return interrupted(result, "before chains have corrected it")
    except (CallbackFailure, ValueError, jax.errors.JaxRuntimeError) as error:
        message = f"{result.message}; chains failed: {first_line(error)}"
        return result.with_facts(message=message)


def better_of(one: FitResult, other: FitResult) -> FitResult:
    """The better of two answers, with the time of both.

    Args:
        one: An answer.
        other: Another one about the same posterior.
    """
    best = max(one, other, key=lambda answer: answer.rank)
    return best.with_infinite_of((one, other)).with_facts(
        seconds_start=one.seconds_start + other.seconds_start,
        seconds_compile=one.seconds_compile + other.seconds_compile,
        seconds_run=one.seconds_run + other.seconds_run,
    )


def corrected(result: FitResult) -> FitResult:
    """The same fit with draws of chains as its answer, if these can be trusted more.

    Weights cannot correct a guide that is too simple by much: a few scales that are not
    normal make all of it wrong. Chains begin where the guide is, in the space that it
    has whitened, and need not go far.

    Args:
        result: A fit with a guide of the program's own choice.
    """
    target = result.posterior.target
    if result.status != "finished" or not result.has_weights or target is None:
        return result
    if _num_places(result) > 1 or result.parts is not None:
        return result  # chains do not tell how much mass each mode has
    has_rows = target.draw_data(host_key(0)) is not None
    if has_rows or result.evidence.chains is None or result.verdict.trusted:
        return result
    if not _could_be_trusted(result.evidence):
        return result
    began = time.perf_counter()
    posterior, sample = result.posterior, result.importance
    with on_one_core(target):
        chains, vectors = chains_from(host_key(_SEED), posterior, sample)
    evidence = dataclasses.replace(
        result.evidence,
        weights=None,
        chains=None,
        sampler=chains.evidence,
        broad=result.compared_with_broad(vectors),
        redrawn=None,
    )
    evidence = with_redrawn(evidence, target, vectors)
    guide = result.choices.get("guide", "the guide")
    tried = f"{result.choices.get('tried', '')}; {guide}: {result.verdict}"
    other = result.with_facts(
        chains=chains,
        evidence=evidence,
        verdict=judge(evidence),
        choices={**result.choices, "tried": tried.lstrip("; ")},
        seconds_run=result.seconds_run + time.perf_counter() - began,
    )
    gain = other.rank[0] - result.rank[0]
    # Chains that agree are the better answer, if weights do not correct the guide.
    has_met = chains.rhat < MET_RHAT and not result.has_usable_weights
    return other if gain > 0 or (gain == 0 and has_met) else result


def _num_places(result: FitResult) -> int:
    """Separate places that the start has found; parts of one place count once."""
    if result.start is None:
        return 0
    search = result.start.search
    return len(result.start.modes) if search is None else search.num_places


def _could_be_trusted(evidence: Evidence) -> bool:
    """Whether perfect chains would remove all that speaks against an answer."""
    perfect = SamplerEvidence(rhat=1.0, ess=np.inf, divergences=0, num_draws=1)
    return judge(
        dataclasses.replace(
            evidence,
            weights=None,
            chains=None,
            broad=None,
            redrawn=None,
            sampler=perfect,
        )
    ).trusted
