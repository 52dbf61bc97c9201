"""Many fits in one program, each keeping what scored best on held-out data."""

import time
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
import paramax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from softcvi.fitting import AbstractOptimizer, AbstractReporter
from softcvi.guides import AbstractGuide
from softcvi.objectives import AbstractObjective
from softcvi.targets import AbstractTarget

Score = Callable[[PRNGKeyArray, AbstractGuide, PyTree], Array]
_UPDATES = 50


class PlainAdam(AbstractOptimizer):
    """Adam at a constant rate without clipping; rates can be stacked.

    Args:
        rate: The learning rate.

    Example:
        >>> PlainAdam(jnp.array([1e-3, 1e-4])).flat
        True
    """

    rate: Array
    flat: bool = eqx.field(static=True, default=True)

    def init(self, params: PyTree) -> PyTree:
        return optax.scale_by_adam().init(params)

    def update(self, grads, state, params, step, total):
        updates, state = optax.scale_by_adam().update(grads, state)
        return params - self.rate * updates, state


class Kept(eqx.Module):
    """The best guide of every fit, arrays with a leading axis of fits.

    Attributes:
        guide: The guide at the best check.
        score: Its score.
        step: Steps done by then.
        scores: The scores of all checks.
        seconds_compile: Time of compilation.
        seconds_run: Time of the loop.
    """

    guide: AbstractGuide
    score: Float[Array, " fits"]
    step: Int[Array, " fits"]
    scores: Float[Array, "fits checks"]
    seconds_compile: float
    seconds_run: float


class _State(eqx.Module):
    params: PyTree
    optimizer_state: PyTree
    best_params: PyTree
    best_check: Int[Array, ""]
    scores: Float[Array, " checks"]


class _Fit(eqx.Module):
    key: PRNGKeyArray
    static: PyTree
    template: PyTree
    target: AbstractTarget
    held_out: PyTree
    optimizer: AbstractOptimizer
    objective: AbstractObjective
    score: Score = eqx.field(static=True)
    every: int = eqx.field(static=True)

    def guide(self, params: PyTree) -> AbstractGuide:
        return eqx.combine(ravel_pytree(self.template)[1](params), self.static)


def fit_keeping_best(
    keys: PRNGKeyArray,
    targets: AbstractTarget,
    guides: AbstractGuide,
    held_out: PyTree,
    score: Score,
    *,
    objective: AbstractObjective,
    optimizers: AbstractOptimizer,
    steps: int,
    every: int,
    reporter: AbstractReporter,
    description: str = "fits",
) -> Kept:
    """Fit once per key in one compiled program, with a check every so many steps.

    Args:
        keys: One key a fit.
        targets: Targets, arrays with a leading axis of fits.
        guides: Starting guides, likewise.
        held_out: Held-out data, likewise.
        score: Function ``(key, guide, held_out) -> scalar`` of one fit; higher is
            better.
        objective: The objective of all fits.
        optimizers: An optimiser of the flat parameters, arrays stacked likewise.
        steps: Optimisation steps, a multiple of ``every``.
        every: Steps from check to check.
        reporter: Told how far the fits are.
        description: What to call them.

    Example:
        >>> from softcvi import ELBO, DensityTarget
        >>> from softcvi.fitting import Silent
        >>> from softcvi.guides import mean_field
        >>> def log_prob(x, observed):
        ...     return -0.5 * jnp.sum((x - observed) ** 2)
        >>> observed = jnp.array([[1.0], [3.0]])
        >>> targets = DensityTarget(log_prob, jnp.zeros(1), observed=observed)
        >>> guides = eqx.filter_vmap(lambda _: mean_field(jnp.zeros(1)))(observed)
        >>> kept = fit_keeping_best(
        ...     jr.split(jr.key(0), 2), targets, guides, observed,
        ...     lambda key, guide, x: -jnp.sum((guide.distribution.loc - x) ** 2),
        ...     objective=ELBO(), optimizers=PlainAdam(jnp.array([0.1, 0.1])),
        ...     steps=200, every=20, reporter=Silent(),
        ... )
        >>> bool((kept.score > -0.1).all())
        True
    """
    if every < 1 or steps < every or steps % every:
        raise ValueError(
            f"steps: must be a multiple of the {every} steps from check to check; got "
            f"{steps}"
        )
    checks = steps // every
    axes = eqx.if_array(0)
    state, fit = eqx.filter_vmap(
        lambda key, target, guide, data, optimizer: _prepare(
            key, target, guide, data, optimizer, objective, score, every, checks
        ),
        in_axes=(0, axes, axes, axes, axes),
    )(keys, targets, guides, held_out, optimizers)
    reporter.begin(description, steps)
    began = time.perf_counter()
    try:
        state = jax.block_until_ready(_advance(state, _number(0), _number(0), fit))
        seconds_compile = time.perf_counter() - began
        began, done = time.perf_counter(), 0
        while done < checks:
            stop = min(checks, done + max(1, checks // _UPDATES))
            state = _advance(state, _number(done), _number(stop), fit)
            jax.block_until_ready(state)
            done, elapsed = stop, time.perf_counter() - began
            best = float(jnp.mean(jnp.max(state.scores, axis=1)))
            reporter.update(done * every, done * every / elapsed, {"best score": best})
    finally:
        reporter.end()
    return Kept(
        guide=eqx.filter_vmap(lambda s, f: f.guide(s.best_params))(state, fit),
        score=jnp.max(state.scores, axis=1),
        step=(state.best_check + 1) * every,
        scores=state.scores,
        seconds_compile=seconds_compile,
        seconds_run=time.perf_counter() - began,
    )


def _prepare(
    key, target, guide, held_out, optimizer, objective, score, every, checks
) -> tuple[_State, _Fit]:
    template, static = eqx.partition(
        guide,
        eqx.is_inexact_array,
        is_leaf=lambda leaf: isinstance(leaf, paramax.NonTrainable),
    )
    params = ravel_pytree(template)[0]
    state = _State(
        params=params,
        optimizer_state=optimizer.init(params),
        best_params=params,
        best_check=jnp.zeros((), jnp.int32),
        scores=jnp.full(checks, -jnp.inf),
    )
    return state, _Fit(
        key, static, template, target, held_out, optimizer, objective, score, every
    )


def _number(value: int) -> Array:
    # Traced: a plain integer would be part of the program, and each chunk a new one.
    return jnp.asarray(value, jnp.int32)


@eqx.filter_jit
def _advance(state: _State, start: Array, stop: Array, fit: _Fit) -> _State:
    def advance_one(state: _State, fit: _Fit) -> _State:
        return jax.lax.fori_loop(start, stop, lambda i, s: _to_check(s, i, fit), state)

    return eqx.filter_vmap(advance_one)(state, fit)


def _to_check(state: _State, check: Array, fit: _Fit) -> _State:
    first = check * fit.every
    state = jax.lax.fori_loop(
        first, first + fit.every, lambda i, s: _step(s, i, fit), state
    )
    key = jr.fold_in(jr.fold_in(fit.key, first), 1)
    score = fit.score(key, paramax.unwrap(fit.guide(state.params)), fit.held_out)
    better = score > jnp.max(state.scores)
    return _State(
        params=state.params,
        optimizer_state=state.optimizer_state,
        best_params=jnp.where(better, state.params, state.best_params),
        best_check=jnp.where(better, check, state.best_check),
        scores=state.scores.at[check].set(score),
    )


def _step(state: _State, step: Array, fit: _Fit) -> _State:
    key = jr.fold_in(jr.fold_in(fit.key, step), 0)

    def loss(params: PyTree) -> Array:
        guide = paramax.unwrap(fit.guide(params))
        return fit.objective.loss(key, guide, fit.target)[0]

    grads = jax.grad(loss)(state.params)
    params, optimizer_state = fit.optimizer.update(
        grads, state.optimizer_state, state.params, step, step
    )
    return eqx.tree_at(
        lambda s: (s.params, s.optimizer_state), state, (params, optimizer_state)
    )
