"""Cost of a step against very many parameters and groups, beside NumPyro's ELBO."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import softcvi
from softcvi.fitting import paper_optimizer
from softcvi.guides import hierarchical, mean_field
from softcvi.objectives import LocalLabels, RandomBlocks
from softcvi.targets import PlateTarget
from softcvi_experiments.bench._timing import seconds_of

DIMENSIONS = [10, 100, 1_000, 10_000, 100_000]
GROUPS = [10, 100, 1_000, 10_000, 100_000]
_ROWS = 8
_RATE = 1e-3
Make = Callable[[int], Callable[[int], float]]


def dimension_ways() -> dict[str, Make]:
    """Mean-field normals on a standard normal, by objective.

    Example:
        >>> list(dimension_ways())[-1]
        'NumPyro, ELBO'
    """
    objectives = {
        "SoftCVI, K = 8": softcvi.SoftCVI(),
        "SoftCVI, 8 sets with blocks of 16": softcvi.SoftCVI(blocks=RandomBlocks(16)),
        "ELBO, 8 draws": softcvi.ELBO(),
    }

    def ours(objective) -> Make:
        def make(size: int):
            target = normal_target(size)
            return _fit(target, mean_field(target), objective)

        return make

    ways = {name: ours(objective) for name, objective in objectives.items()}
    return ways | {"NumPyro, ELBO": lambda size: _numpyro(normal_model, (size,))}


def group_ways() -> dict[str, Make]:
    """A logistic regression of two coefficients for each group of 8 rows.

    Example:
        >>> list(group_ways())
        ['SoftCVI, local labels', 'ELBO, 8 draws', 'NumPyro, ELBO']
    """
    objectives = {
        "SoftCVI, local labels": softcvi.SoftCVI(blocks=LocalLabels(local_draws=1)),
        "ELBO, 8 draws": softcvi.ELBO(),
    }

    def ours(objective) -> Make:
        def make(groups: int):
            target = group_target(groups)
            return _fit(target, hierarchical(target, local=("beta",)), objective)

        return make

    ways = {name: ours(objective) for name, objective in objectives.items()}
    return ways | {"NumPyro, ELBO": lambda n: _numpyro(group_model, group_rows(n))}


def normal_target(size: int) -> softcvi.DensityTarget:
    """A standard normal.

    Args:
        size: Number of parameters.

    Example:
        >>> normal_target(3).structure.size
        3
    """
    return softcvi.DensityTarget(_normal, jnp.zeros(size))


def _normal(x: jax.Array) -> jax.Array:
    return -0.5 * jnp.sum(x**2)


def normal_model(size: int) -> None:
    """The same in NumPyro.

    Args:
        size: Number of parameters.
    """
    import numpyro
    import numpyro.distributions as dist

    numpyro.sample("x", dist.Normal(0.0, 1.0).expand([size]).to_event(1))


def group_rows(groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Covariate and outcome of 8 rows for each group.

    Args:
        groups: Number of groups.

    Example:
        >>> [part.shape for part in group_rows(3)]
        [(3, 8), (3, 8)]
    """
    rng = np.random.default_rng(groups)
    x = rng.normal(size=(groups, _ROWS)).astype(np.float32)
    return x, (rng.uniform(size=x.shape) < 0.5).astype(np.float32)


def group_target(groups: int) -> PlateTarget:
    """Two coefficients for each group, with a common mean.

    Args:
        groups: Number of groups.

    Example:
        >>> group_target(3).structure.size
        8
    """
    return PlateTarget(
        _log_global,
        _log_local,
        like={"mu": jnp.zeros(2), "beta": jnp.zeros((groups, 2))},
        local=("beta",),
        data=group_rows(groups),
    )


def _log_global(shared):
    return -0.5 * jnp.sum(shared["mu"] ** 2)


def _log_local(shared, local, row):
    x, y = row
    logits = local["beta"][0] + local["beta"][1] * x
    seen = jnp.sum(log_bernoulli(y, logits))
    return seen - 0.5 * jnp.sum((local["beta"] - shared["mu"]) ** 2)


def log_bernoulli(y: jax.Array, logits: jax.Array) -> jax.Array:
    """As NumPyro computes it: formulas of different cost are not to be compared.

    Args:
        y: Outcomes, zero or one.
        logits: Their log odds.

    Example:
        >>> log_bernoulli(jnp.ones(()), jnp.zeros(())).round(3).item()
        -0.6930000185966492
    """
    bound = jnp.clip(logits, 0) + jnp.log1p(jnp.exp(-jnp.abs(logits)))
    return y * logits - bound


def group_model(x, y) -> None:
    """The same in NumPyro.

    Args:
        x: Covariate, one row for each group.
        y: Outcome.
    """
    import numpyro
    import numpyro.distributions as dist

    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    with numpyro.plate("groups", len(x)):
        beta = numpyro.sample("beta", dist.Normal(mu, 1.0).to_event(1))
        logits = beta[:, :1] + beta[:, 1:] * x
        numpyro.sample("y", dist.Bernoulli(logits=logits).to_event(1), obs=y)


def _fit(target, guide, objective) -> Callable[[int], float]:
    def run(steps: int) -> float:
        return softcvi.fit(
            jax.random.key(0), target, guide, objective=objective, steps=steps,
            optimizer=paper_optimizer(_RATE), start=None, progress=False,
        ).seconds_run  # fmt: skip

    return run


def _numpyro(model: Callable, args: tuple[Any, ...]) -> Callable[[int], float]:
    """NumPyro's updates in one compiled loop, without its bar."""
    from numpyro import infer, optim
    from numpyro.infer.autoguide import AutoNormal

    svi = infer.SVI(
        model, AutoNormal(model), optim.Adam(_RATE), infer.Trace_ELBO(num_particles=8)
    )
    state = svi.init(jax.random.key(0), *args)

    @jax.jit
    def loop(state, steps):
        return jax.lax.fori_loop(0, steps, lambda _, s: svi.update(s, *args)[0], state)

    def run(steps: int) -> float:
        length = jnp.asarray(steps, jnp.int32)
        return seconds_of(lambda: jax.block_until_ready(loop(state, length)))

    return run
