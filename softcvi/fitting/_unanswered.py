"""The verdict's evaluations of a model that may not come back from them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from softcvi.fitting._interrupt import Abandoned, Patience, wait_for
from softcvi.posterior import ImportanceSample, Posterior, psis

if TYPE_CHECKING:
    from softcvi.fitting._result import FitResult

T = TypeVar("T")
# How long a fit that was ended early waits for its verdict, compilation included: so
# long, and a multiple of the time that it took itself.
_SECONDS, _TIMES = 120.0, 2.0


def in_time(work: Callable[[], T], result: "FitResult") -> T:
    """Work that calls the model, for a limited time if the fit itself was ended early.

    Who has set a time limit, or pressed Ctrl-C, may have a model that slows down.

    Args:
        work: The work.
        result: Of the fit.

    Raises:
        Abandoned: If the model does not come back in time, or did not before.
    """
    if not result.model_answers:
        raise Abandoned("the model does not return")
    if result.status not in ("stopped", "interrupted"):
        return work()
    seconds = result.seconds_start + result.seconds_compile + result.seconds_run
    patience = Patience(lambda: "the fit has ended", _SECONDS + _TIMES * seconds)
    return wait_for(work, patience)


def without_density(
    key: PRNGKeyArray, posterior: Posterior, num_draws: int
) -> ImportanceSample:
    """Draws of the guide where the model cannot be evaluated; no weight is usable.

    Args:
        key: Random key.
        posterior: The posterior.
        num_draws: Number of draws.
    """
    guide, keys = posterior.guide, jax.random.split(key, num_draws)
    particles = jax.vmap(guide.sample)(keys)
    log_q = np.asarray(jax.vmap(guide.log_prob)(particles), np.float64)
    log_p = np.full(num_draws, -np.inf)
    log_weights, khat = psis(log_p - log_q)
    draws = posterior.sample(key, num_draws)
    return ImportanceSample(draws, log_p, log_q, log_weights, khat, -np.inf, particles)
