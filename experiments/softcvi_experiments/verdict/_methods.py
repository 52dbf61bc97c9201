"""What is run on a posterior: the two calls of this program, and its peers."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import softcvi
from softcvi.targets import AbstractTarget
from softcvi_experiments.nuts import sample_target

NUM_DRAWS = 8_000
USABLE_KHAT = 0.7
PATHS = 8


@dataclasses.dataclass(frozen=True)
class Answer:
    """Draws and whether the method itself trusts them.

    Attributes:
        draws: Arrays by site in model coordinates.
        trusted: What the method's own check says.
        level: The same in the method's words.
        details: Numbers for the record.

    Example:
        >>> Answer({"x": np.zeros(3)}, True, "trusted", {}).trusted
        True
    """

    draws: Mapping[str, Any]
    trusted: bool
    level: str
    details: dict[str, Any]


def fit(key, target: AbstractTarget) -> Answer:
    """``softcvi.fit`` at defaults."""
    fit_key, draw_key = jax.random.split(key)
    result = softcvi.fit(fit_key, target, progress=False, throw=False)
    return _ours(
        result, result.sample(draw_key, NUM_DRAWS), {"fit_status": result.status}
    )


def fit_until(key, target: AbstractTarget) -> Answer:
    """``softcvi.fit_until`` at defaults."""
    fit_key, draw_key = jax.random.split(key)
    answer = softcvi.fit_until(fit_key, target, progress=False)
    rungs = [attempt.name for attempt in answer.attempts]
    return _ours(answer, answer.sample(draw_key, NUM_DRAWS), {"rungs": rungs})


def _ours(result, draws, details: dict[str, Any]) -> Answer:
    verdict = result.verdict
    numbers = {
        "khat": float(verdict.khat),
        "ess_share": float(verdict.ess_share),
        "reasons": list(verdict.reasons),
    }
    return Answer(draws, bool(verdict.trusted), verdict.level, numbers | details)


def nuts(key, target: AbstractTarget) -> Answer:
    """NumPyro's NUTS, trusted by R-hat, effective sample size and divergences."""
    if not target.has_gradient:
        raise NotImplementedError("NUTS needs a gradient")
    run = sample_target(key, target)
    return Answer(run.draws, run.trusted, str(run), run.checks)


def pathfinder(key, target: AbstractTarget) -> Answer:
    """BlackJAX's multi-path pathfinder from eight starts, trusted by k-hat."""
    if not target.has_gradient:
        raise NotImplementedError("pathfinder needs a gradient")
    from blackjax.vi import multipathfinder

    start_key, run_key, draw_key = jax.random.split(key, 3)
    structure = target.structure
    starts = jax.vmap(target.initial_particle)(jax.random.split(start_key, PATHS))
    flat = jax.vmap(structure.ravel)(starts)
    algorithm = multipathfinder.as_top_level_api(
        lambda vector: target.log_density(structure.unravel(vector))
    )
    state, _ = jax.jit(lambda k, x: algorithm.init(k, x))(run_key, flat)
    _, khat = multipathfinder.psis_weights(state)
    vectors = algorithm.sample(draw_key, state, NUM_DRAWS)

    def to_model(vector):
        return target.describe(target.space.to_model(structure.unravel(vector)))

    draws = jax.jit(jax.vmap(to_model))(jnp.asarray(vectors))
    khat = float(khat)
    return Answer(draws, khat < USABLE_KHAT, f"k-hat {khat:.2f}", {"khat": khat})


METHODS: dict[str, Callable[..., Answer]] = {
    "fit": fit,
    "fit_until": fit_until,
    "nuts": nuts,
    "pathfinder": pathfinder,
}


def as_arrays(draws: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Draws on the host.

    Example:
        >>> as_arrays({"x": jnp.zeros(2)})["x"]
        array([0., 0.], dtype=...)
    """
    return {name: np.asarray(value) for name, value in draws.items()}
