"""The models that all libraries are given, written once in NumPyro (and in PyMC)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from softcvi_experiments.references import (
    BuiltinReferences,
    eight_schools_model,
    garch_model,
    simulate_linear_regression,
)

_BOUND = 3.0


@dataclass(frozen=True)
class Problem:
    """A posterior that several libraries can fit.

    Args:
        name: Name of the task.
        title: What tables call it.
        model: NumPyro model.
        args: Its arguments.
        guide: ``"mean-field"`` or ``"flow"``.
        steps: Steps of each run.
        pymc: Makes the same model in PyMC; None where that was not written.

    Example:
        >>> get_problem("eight_schools").guide
        'mean-field'
    """

    name: str
    title: str
    model: Callable[..., None]
    args: tuple[Any, ...]
    guide: str
    steps: int
    pymc: Callable[[], Any] | None = None


def linear_regression_model(x: jax.Array, y: jax.Array) -> None:
    """Linear regression with unit priors and noise.

    Example:
        >>> from numpyro import handlers
        >>> with handlers.seed(rng_seed=0):
        ...     trace = handlers.trace(linear_regression_model).get_trace(
        ...         jnp.ones((3, 2)), jnp.zeros(3)
        ...     )
        >>> sorted(trace)
        ['beta', 'mu', 'y']
    """
    import numpyro
    import numpyro.distributions as dist

    unit = dist.Normal(0.0, 1.0)
    beta = numpyro.sample("beta", unit.expand([x.shape[1]]).to_event(1))
    mu = numpyro.sample("mu", unit)
    mean = jnp.matmul(x, beta, precision=jax.lax.Precision.HIGHEST) + mu
    numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)


def slcp_model(x: jax.Array) -> None:
    """Simple likelihood, complex posterior.

    Example:
        >>> from numpyro import handlers
        >>> with handlers.seed(rng_seed=0):
        ...     trace = handlers.trace(slcp_model).get_trace(jnp.zeros((4, 2)))
        >>> sorted(trace)
        ['theta', 'x']
    """
    import numpyro
    import numpyro.distributions as dist

    box = dist.Uniform(-_BOUND, _BOUND).expand([5]).to_event(1)
    theta = numpyro.sample("theta", box)
    s1, s2 = theta[2] ** 2, theta[3] ** 2
    zero = jnp.zeros(())
    rows = [[s1, zero], [s2 * jnp.tanh(theta[4]), s2 / jnp.cosh(theta[4])]]
    tril = jnp.stack([jnp.stack(row) for row in rows])
    numpyro.sample("x", dist.MultivariateNormal(theta[:2], scale_tril=tril), obs=x)


def _eight_schools_pymc():
    import pymc as pm

    observed = BuiltinReferences().load("eight_schools").observed
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 5.0)
        tau = pm.HalfCauchy("tau", 5.0)
        theta_std = pm.Normal("theta_std", 0.0, 1.0, shape=8)
        pm.Normal("y", mu + tau * theta_std, observed["sigma"], observed=observed["y"])
    return model


def _linear_regression_pymc():
    import pymc as pm

    data = _linear_regression_data()
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=data["x"].shape[1])
        mu = pm.Normal("mu", 0.0, 1.0)
        pm.Normal("y", data["x"] @ beta + mu, 1.0, observed=data["y"])
    return model


def _linear_regression_data() -> dict[str, np.ndarray]:
    data = simulate_linear_regression(jax.random.key(0))
    return {name: np.asarray(value) for name, value in data.items()}


def _args(*arrays: np.ndarray) -> tuple[jax.Array, ...]:
    return tuple(jnp.asarray(array, float) for array in arrays)


def get_problem(name: str) -> Problem:
    """The problem that belongs to one of the paper's tasks.

    GARCH and SLCP have no PyMC version: the one needs a loop that PyMC compiles for
    minutes, the other a flow that PyMC does not have.

    Args:
        name: Name of the task.

    Example:
        >>> get_problem("slcp").title
        'SLCP, flow'
    """
    if name == "linear_regression":
        data = _linear_regression_data()
        return Problem(
            name, "Linear regression, mean-field", linear_regression_model,
            _args(data["x"], data["y"]), "mean-field", 5_000, _linear_regression_pymc,
        )  # fmt: skip
    source = BuiltinReferences()
    if name == "eight_schools":
        data = source.load("eight_schools").observed
        return Problem(
            name, "Eight schools, mean-field", eight_schools_model,
            _args(data["y"], data["sigma"]), "mean-field", 5_000, _eight_schools_pymc,
        )  # fmt: skip
    if name == "garch":
        data = source.load("garch_paper").observed
        return Problem(
            name, "GARCH(1,1), mean-field", garch_model,
            (*_args(data["y"]), "paper"), "mean-field", 5_000,
        )  # fmt: skip
    if name == "slcp":
        data = source.load("slcp_01").observed
        return Problem(
            name, "SLCP, flow", slcp_model, _args(data["x"]), "flow", 1_000
        )  # fmt: skip
    raise ValueError(f"unknown problem {name!r}")
