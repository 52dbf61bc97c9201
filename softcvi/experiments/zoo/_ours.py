"""This library on a zoo model, with nothing changed from the defaults."""

import jax

import softcvi
from softcvi.adapters import from_numpyro
from softcvi.experiments.zoo._model import ZooModel
from softcvi.experiments.zoo._outcome import Outcome

NUM_DRAWS = 20_000
STARTS = 8
BUDGET = 300.0


def _outcome(result, key: jax.Array) -> Outcome:
    draw_key, weight_key = jax.random.split(key)
    posterior = result.posterior
    return Outcome(
        draws=posterior.sample(draw_key, NUM_DRAWS),
        log_prob=posterior.log_prob,
        khat=lambda: float(posterior.importance(weight_key, NUM_DRAWS).khat),
        trusted=result.verdict.trusted,
        verdict=str(result.verdict),
        details={
            "status": result.status,
            "seconds_compile": result.seconds_compile,
            "seconds_run": result.seconds_run,
            "choices": {k: str(v) for k, v in result.choices.items()},
        },
    )


def _run(model: ZooModel, seed: int, call) -> Outcome:
    fit_key, draw_key = jax.random.split(jax.random.key(seed))
    target = from_numpyro(model.model, *model.args, **model.kwargs)
    return _outcome(call(fit_key, target), draw_key)


def fit(model: ZooModel, seed: int) -> Outcome:
    """``softcvi.fit(key, target)``."""
    return _run(model, seed, lambda k, t: softcvi.fit(k, t, progress=False))


def fit_starts(model: ZooModel, seed: int) -> Outcome:
    """``softcvi.fit(key, target, starts=8)``."""
    return _run(
        model, seed, lambda k, t: softcvi.fit(k, t, starts=STARTS, progress=False)
    )


def fit_until(model: ZooModel, seed: int) -> Outcome:
    """``softcvi.fit_until(key, target, khat=0.7, budget=300)``."""
    return _run(
        model, seed, lambda k, t: softcvi.fit_until(k, t, khat=0.7, budget=BUDGET)
    )
