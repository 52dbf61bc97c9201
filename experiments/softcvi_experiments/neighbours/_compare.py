"""One case: fitted with the defaults, and by NUTS."""

import time
from collections.abc import Mapping

import jax
import numpy as np
from numpyro.infer import init_to_median

import softcvi
from softcvi.adapters import from_numpyro
from softcvi_experiments.neighbours._models import Case
from softcvi_experiments.nuts import sample_model


def compare(case: Case, *, seed: int = 0, steps: int = 10_000) -> dict:
    """Fit a case both ways and measure the distance.

    Args:
        case: The model with its data.
        seed: Of both.
        steps: Of the fit.

    Returns:
        One row of the table.
    """
    # Of the processor: other work on the machine does not count.
    began = time.process_time()
    target = from_numpyro(case.model, *case.args)
    result = softcvi.fit(jax.random.key(seed), target, steps=steps, progress=False)
    level = result.verdict.level
    seconds = time.process_time() - began
    # From prior medians: from random points a chain can stay in a swapped mode of the
    # mixture that has no mass to speak of.
    began = time.process_time()
    chains = sample_model(
        jax.random.key(seed + 1),
        case.marginal or case.model,
        case.args,
        samples=2500,
        target_accept_prob=0.95,
        init_strategy=init_to_median,
    )
    nuts_seconds = time.process_time() - began
    truth = chains.draws
    posterior = result.posterior
    plain = posterior.sample(jax.random.key(seed + 2), 4000)
    corrected = posterior.resample(jax.random.key(seed + 2), 4000)
    return {
        "model": case.name,
        "parameters": target.structure.size,
        "guide": result.choices["guide"],
        "khat": float(result.khat),
        "verdict": level,
        "seconds": seconds,
        "nuts_seconds": nuts_seconds,
        "nuts_rhat": chains.rhat,
        "plain": distance(plain, truth, case.sites),
        "corrected": distance(corrected, truth, case.sites),
    }


def distance(
    draws: Mapping[str, np.ndarray],
    truth: Mapping[str, np.ndarray],
    sites: tuple[str, ...],
) -> tuple[float, float]:
    """Worst error of a mean in posterior sds, and the ratio of sds furthest from one.

    Example:
        >>> import numpy as np
        >>> x = {"a": np.array([0.0, 2.0])}
        >>> distance({"a": np.array([1.0, 3.0])}, x, ("a",))
        (1.0, 1.0)
    """
    shifts, ratios = [], []
    for name in sites:
        ours, theirs = (np.asarray(d[name], np.float64) for d in (draws, truth))
        sd = theirs.std(axis=0)
        shifts.append(np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) / sd)
        ratios.append(ours.std(axis=0) / sd)
    all_ratios = np.concatenate([np.ravel(r) for r in ratios])
    worst = all_ratios[np.argmax(np.abs(np.log(all_ratios)))]
    return float(max(np.max(s) for s in shifts)), float(worst)
