"""Several starts of one fit: ranked by evidence, merged where they found modes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from softcvi.fitting._loop import Batch
from softcvi.fitting._many import begin_and_train
from softcvi.fitting._result import FitResult
from softcvi.fitting._train import Plan, raise_if_failed
from softcvi.guides import AbstractGuide, MixtureGuide
from softcvi.objectives import AbstractObjective
from softcvi.posterior import Posterior
from softcvi.starts import AbstractStart
from softcvi.targets import AbstractTarget

_FAR = 4.0
_NEGLIGIBLE = 7.0


def fit_from_starts(
    key: PRNGKeyArray,
    target: AbstractTarget,
    guide: AbstractGuide,
    starts: int,
    start: AbstractStart,
    plan: Plan,
    objective: AbstractObjective,
) -> FitResult:
    """Fit from several starts in one program; the best, or a mixture of modes."""
    batch = Batch(starts, guide=False, target=False)
    results = begin_and_train(
        jax.random.split(key, starts),
        target,
        guide,
        batch,
        plan,
        objective,
        start=start,
        paths=1,
    )
    usable = [r for r in results if r.status != "failed"]
    if not usable:
        raise_if_failed(results, plan.throw)
        return results[0]
    evidence = np.array([r.importance.log_evidence for r in usable])
    ranked = [usable[i] for i in np.argsort(-evidence)]
    # A guide that is not the answer may have been where this one is not.
    met = sum(result.num_infinite_densities for result in results)
    best = ranked[0].with_facts(num_infinite_densities=met)
    modes = _distinct(ranked)
    if len(modes) == 1:
        words = f"{starts} starts, all in one place or negligible"
        return dataclasses.replace(best, choices={**best.choices, "starts": words})
    logits = jnp.asarray([r.importance.log_evidence for r in modes])
    merged = MixtureGuide([r.posterior.guide for r in modes], logits - jnp.max(logits))
    weights = ", ".join(f"{w:.2f}" for w in np.asarray(merged.weights))
    words = f"{starts} starts found {len(modes)} modes, weights {weights}"
    return dataclasses.replace(
        best,
        posterior=Posterior(merged, best.posterior.target),
        choices={**best.choices, "starts": words},
    )


def _distinct(ranked: list[FitResult]) -> list[FitResult]:
    """Fits whose evidence counts and whose draws do not overlap."""
    kept: list[FitResult] = []
    for result in ranked:
        behind = ranked[0].importance.log_evidence - result.importance.log_evidence
        if not behind < _NEGLIGIBLE:
            continue
        if all(_are_separate(result, other) for other in kept):
            kept.append(result)
    return kept


def _are_separate(one: FitResult, other: FitResult) -> bool:
    """Whether two fits are separated along the line that joins their means."""
    a, b = (_draws_as_rows(r) for r in (one, other))
    difference = a.mean(axis=0) - b.mean(axis=0)
    scale = a.std(axis=0) + b.std(axis=0) + 1e-12
    direction = difference / scale**2
    first, second = a @ direction, b @ direction
    gap = abs(first.mean() - second.mean())
    return bool(gap > _FAR * 0.5 * (first.std() + second.std()))


def _draws_as_rows(result: FitResult) -> np.ndarray:
    draws = result.importance.draws.values()
    return np.concatenate(
        [np.asarray(d, np.float64).reshape(len(d), -1) for d in draws], axis=1
    )
