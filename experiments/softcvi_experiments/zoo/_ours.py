"""This library on a zoo model, with nothing changed from the defaults."""

import jax

import softcvi
from softcvi.adapters import from_numpyro
from softcvi_experiments.zoo._model import ZooModel
from softcvi_experiments.zoo._outcome import Outcome

NUM_DRAWS = 20_000
STARTS = 8


def _target(model: ZooModel):
    return from_numpyro(model.model, *model.args, **model.kwargs)


def _details(result) -> dict[str, object]:
    return {
        "status": result.status,
        "seconds_start": result.seconds_start,
        "seconds_compile": result.seconds_compile,
        "seconds_run": result.seconds_run,
        "choices": {name: str(why) for name, why in result.choices.items()},
    }


def _fit(model: ZooModel, seed: int, starts: int) -> Outcome:
    fit_key, draw_key, weight_key = jax.random.split(jax.random.key(seed), 3)
    result = softcvi.fit(fit_key, _target(model), starts=starts, progress=False)
    posterior = result.posterior
    return Outcome(
        draws=result.sample(draw_key, NUM_DRAWS),
        uncorrected=lambda: posterior.sample(draw_key, NUM_DRAWS),
        log_prob=posterior.log_prob,
        khat=lambda: float(posterior.importance(weight_key, NUM_DRAWS).khat),
        trusted=result.verdict.trusted,
        verdict=str(result.verdict),
        details=_details(result) | {"by_chains": result.chains is not None},
    )


def fit(model: ZooModel, seed: int) -> Outcome:
    """``softcvi.fit(key, target)``."""
    return _fit(model, seed, starts=1)


def fit_starts(model: ZooModel, seed: int) -> Outcome:
    """``softcvi.fit(key, target, starts=8)``."""
    return _fit(model, seed, starts=STARTS)


def fit_until(model: ZooModel, seed: int) -> Outcome:
    """``softcvi.fit_until(key, target)``."""
    fit_key, draw_key, weight_key = jax.random.split(jax.random.key(seed), 3)
    answer = softcvi.fit_until(fit_key, _target(model), progress=False)
    posterior = answer.posterior
    rungs = [str(attempt) for attempt in answer.attempts]
    return Outcome(
        draws=answer.sample(draw_key, NUM_DRAWS),
        # Of the best guide; the draws of a last rung of NUTS have no density.
        log_prob=posterior.log_prob,
        khat=lambda: float(posterior.importance(weight_key, NUM_DRAWS).khat),
        trusted=answer.trusted,
        verdict=str(answer.verdict),
        details=_details(answer.result)
        | {"rungs": rungs, "by_chains": answer.chains is not None},
    )
