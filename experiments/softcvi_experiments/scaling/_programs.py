"""The programs whose steps are measured: softcvi's and NumPyro's on the same models."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

import softcvi
from softcvi.fitting import paper_optimizer
from softcvi.guides import full_rank, hierarchical, mean_field
from softcvi.objectives import AbstractObjective, LocalLabels
from softcvi.targets import DataTarget
from softcvi_experiments.bench._bare import bare_loop
from softcvi_experiments.bench._growth_large import (
    group_model,
    group_rows,
    group_target,
    log_bernoulli,
    normal_model,
    normal_target,
)
from softcvi_experiments.scaling._costs import Case

_RATE = 1e-3
WAYS = ("SoftCVI", "ELBO", "NumPyro ELBO")
Data = tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Program:
    """A loop, and one step of it.

    Attributes:
        run: Runs so many steps.
        compiled: Compiles one step: gradient and update.
    """

    run: Callable[[int], object]
    compiled: Callable[[], Any]


def program(way: str, case: Case) -> Program:
    """The loop of a case by one of the ways.

    Args:
        way: One of ``WAYS``.
        case: Sizes.

    Example:
        >>> made = program("SoftCVI", Case("mean-field", 4, 3))
        >>> made.run(2).shape
        (6,)
    """
    if way == "NumPyro ELBO":
        return _numpyro(case)
    target, guide = problem(case)
    return ours(target, guide, objective(way, case))


def objective(way: str, case: Case) -> AbstractObjective:
    """The objective of a case; groups have labels of their own.

    Args:
        way: ``"SoftCVI"`` or ``"ELBO"``.
        case: Sizes.

    Example:
        >>> objective("ELBO", Case("mean-field", 4, 3)).num_particles
        4
    """
    if way == "ELBO":
        return softcvi.ELBO(case.particles)
    if case.groups:
        return softcvi.SoftCVI(case.particles, blocks=LocalLabels(local_draws=1))
    return softcvi.SoftCVI(case.particles)


def logistic_rows(rows: int, dimension: int) -> Data:
    """Covariates and outcomes of a logistic regression.

    Args:
        rows: How many.
        dimension: Number of covariates.

    Example:
        >>> [part.shape for part in logistic_rows(5, 2)]
        [(5, 2), (5,)]
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, dimension)).astype(np.float32)
    return x, (rng.uniform(size=rows) < 0.5).astype(np.float32)


def rows_target(data: Data, devices: Sequence[jax.Device] | None = None) -> DataTarget:
    """A logistic regression as a sum over rows, perhaps spread over devices.

    Args:
        data: The rows.
        devices: Where they are.

    Example:
        >>> rows_target(logistic_rows(10, 3)).num_rows
        10
    """
    dimension = data[0].shape[1]
    return DataTarget(
        _log_prior,
        _log_likelihood,
        jnp.zeros(dimension),
        data=data,
        reference=jnp.zeros(dimension),
        devices=devices,
    )


def ours(target: Any, guide: Any, objective: Any) -> Program:
    """The steps of ``softcvi.fit``, from the guide as it is.

    Args:
        target: The posterior.
        guide: The guide.
        objective: The objective.
    """
    optimizer = paper_optimizer(_RATE)

    params, static = eqx.partition(guide, eqx.is_inexact_array)
    flat, unravel = ravel_pytree(params)
    # Arrays are arguments: as constants they would not count as memory of a step.
    arrays, rest = eqx.partition((static, target), eqx.is_array)

    @jax.jit
    def step(key, flat, state, arrays, count):
        static, target = eqx.combine(arrays, rest)

        def loss(flat):
            guide = paramax.unwrap(eqx.combine(unravel(flat), static))
            return objective.loss(key, guide, paramax.unwrap(target))

        (_, info), grads = jax.value_and_grad(loss, has_aux=True)(flat)
        return optimizer.update(grads, state, flat, count, count), info

    @jax.jit
    def loop(key, flat, state, arrays, steps):
        def body(i, carry):
            flat, state, total = carry
            own = jax.random.fold_in(key, i)
            (flat, state), info = step(own, flat, state, arrays, i)
            return flat, state, total + info.elbo

        return jax.lax.fori_loop(0, steps, body, (flat, state, 0.0))

    def run(steps: int) -> object:
        count = jnp.asarray(steps, jnp.int32)
        key, state = jax.random.key(0), optimizer.init(flat)
        return jax.block_until_ready(loop(key, flat, state, arrays, count))

    def compiled() -> Any:
        count = jnp.asarray(1, jnp.int32)
        key, state = jax.random.key(0), optimizer.init(flat)
        return step.lower(key, flat, state, arrays, count).compile()

    if objective.uses_labels:
        return Program(bare_loop(target, guide, objective, optimizer), compiled)
    # The bare loop drops the value of the ELBO, which a fit keeps, and with it all log
    # densities: gradients do not need them. Labels do.
    return Program(run, compiled)


def problem(case: Case) -> tuple[Any, Any]:
    """Posterior and guide of a case.

    Args:
        case: Sizes.

    Example:
        >>> target, guide = problem(Case("full-rank", 8, 3))
        >>> target.structure.size
        3
    """
    if case.groups:
        target: Any = group_target(case.groups)
        return target, hierarchical(target, local=("beta",))
    if case.rows:
        target = rows_target(logistic_rows(case.rows, case.dimension))
    else:
        target = normal_target(case.dimension)
    return target, (full_rank if case.is_dense else mean_field)(target)


def _log_prior(beta: Array) -> Array:
    return -0.5 * jnp.sum(beta**2)


def _log_likelihood(beta: Array, rows: tuple[Array, Array]) -> Float[Array, " n"]:
    x, y = rows
    return log_bernoulli(y, x @ beta)


def _rows_model(x, y) -> None:
    import numpyro
    import numpyro.distributions as dist

    prior = dist.Normal(0.0, 1.0).expand([x.shape[1]]).to_event(1)
    beta = numpyro.sample("beta", prior)
    numpyro.sample("y", dist.Bernoulli(logits=x @ beta).to_event(1), obs=y)


def _numpyro(case: Case) -> Program:
    """NumPyro's updates with their losses in one compiled loop, without its bar."""
    from numpyro import infer, optim
    from numpyro.infer.autoguide import AutoMultivariateNormal, AutoNormal

    model: Callable[..., None] = normal_model
    arrays: tuple[Any, ...] = ()
    sizes: tuple[int, ...] = ()
    if case.groups:
        model, arrays = group_model, group_rows(case.groups)
    elif case.rows:
        model, arrays = _rows_model, logistic_rows(case.rows, case.dimension)
    else:
        sizes = (case.dimension,)
    arrays = tuple(jnp.asarray(array) for array in arrays)
    family = AutoMultivariateNormal if case.is_dense else AutoNormal
    loss = infer.Trace_ELBO(num_particles=case.particles)
    svi = infer.SVI(model, family(model), optim.Adam(_RATE), loss)
    state = svi.init(jax.random.key(0), *arrays, *sizes)

    def update(state, arrays):
        return svi.update(state, *arrays, *sizes)

    @jax.jit
    def loop(state, arrays, steps):
        def body(_, carry):
            state, total = carry
            state, loss = update(state, arrays)
            return state, total + loss

        return jax.lax.fori_loop(0, steps, body, (state, 0.0))

    def run(steps: int) -> object:
        return jax.block_until_ready(loop(state, arrays, jnp.asarray(steps, jnp.int32)))

    return Program(run, lambda: jax.jit(update).lower(state, arrays).compile())
