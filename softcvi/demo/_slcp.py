"""Simple likelihood, complex posterior: four symmetric modes in a box."""

import functools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, Scalar

from softcvi.demo._task import DemoTask, Draws, stored
from softcvi.guides import VectorGuide, spline_flow
from softcvi.targets import DensityTarget

_BOUND = 3.0
_SIGNS = {-1: "\N{MINUS SIGN}", 1: "+"}


def slcp_log_prob(
    x: dict[str, Float[Array, " 5"]], observed: dict[str, Float[Array, "4 2"]]
) -> Scalar:
    """Log density of parameters and data: a uniform prior, a bivariate normal.

    Args:
        x: ``theta``: two means, two roots of scales, the correlation before tanh.
        observed: The four points ``x``.

    Example:
        >>> x = {"theta": jnp.array([0.0, 0.0, 1.0, 1.0, 0.0])}
        >>> round(float(slcp_log_prob(x, {"x": jnp.zeros((4, 2))})), 3)
        -16.31
    """
    theta = x["theta"]
    scale = theta[2:4] ** 2
    # 1 - tanh^2 = sech^2, exact where the difference would cancel.
    rest = 1 / jnp.cosh(theta[4])
    first, second = ((observed["x"] - theta[:2]) / scale).T
    residual = (second - jnp.tanh(theta[4]) * first) / rest
    log_scales = jnp.sum(jnp.log(scale)) + jnp.log(rest) + jnp.log(2 * jnp.pi)
    likelihood = -0.5 * jnp.sum(first**2 + residual**2) - 4 * log_scales
    inside = jnp.all(jnp.abs(theta) <= _BOUND)
    return jnp.where(inside, likelihood - 5 * jnp.log(2 * _BOUND), -jnp.inf)


def slcp_guide(key: PRNGKeyArray) -> VectorGuide:
    """A masked autoregressive spline flow on the prior's box.

    Args:
        key: Random key of its weights.

    Example:
        >>> import jax
        >>> slcp_guide(jax.random.key(0)).structure.size
        5
    """
    return spline_flow(
        {"theta": jnp.zeros(5)},
        key=key,
        layers=4,
        width=30,
        knots=10,
        interval=(-_BOUND, _BOUND),
        uniform_base=True,
    )


def slcp() -> DemoTask:
    """SLCP (Papamakarios et al., 2019) with one simulated observation.

    Only the squares of ``theta[2]`` and ``theta[3]`` enter the likelihood, so each of
    the four combinations of their signs holds exactly a quarter of the mass.

    Example:
        >>> task = slcp()
        >>> list(task.features)[0]
        'mass where theta[2] is − and theta[3] is − (exactly 25%)'
    """
    draws, observed = stored("slcp")
    target = DensityTarget(
        slcp_log_prob, {"theta": jnp.zeros(5)}, observed={"x": observed["x"]}
    )
    features = {
        f"mass where theta[2] is {_SIGNS[a]} and theta[3] is {_SIGNS[b]} "
        "(exactly 25%)": functools.partial(_mass, a, b)
        for a in _SIGNS
        for b in _SIGNS
    }
    return DemoTask(
        name="slcp",
        title="SLCP",
        target=target,
        guide=slcp_guide,
        reference=draws,
        pair=("theta[2]", "theta[3]"),
        steps=5000,
        features=features,
    )


def _mass(first: int, second: int, draws: Draws) -> str:
    theta = np.asarray(draws["theta"])
    inside = (np.sign(theta[:, 2]) == first) & (np.sign(theta[:, 3]) == second)
    return f"{np.mean(inside):.0%}"
