"""A target whose log density is computed in double precision, for a fit in single."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar

from softcvi._compile import host_key
from softcvi.diagnostics import THRESHOLDS
from softcvi.diagnostics._precision import rounding_at
from softcvi.starts._base import StartReport
from softcvi.starts._double import Density, as_density, double_precision
from softcvi.starts._evaluator import Evaluator
from softcvi.starts._proposal import factor_of
from softcvi.targets import AbstractTarget
from softcvi.targets._base import AbstractWrapper
from softcvi.targets._numpy_random import numpy_generator

_DRAWS = 200


class PreciseTarget(AbstractWrapper):
    """Another target, evaluated in double precision relative to a constant.

    Particles, guides and the loop stay in single precision, and so does the setting of
    the process. Labels and weights need differences of log densities only: what is
    returned is the difference to a constant, which single precision can hold.

    Args:
        target: The target.
        offset: Log density, in double precision, of a point near the posterior.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> from softcvi.starts import PreciseTarget
        >>> target = softcvi.DensityTarget(
        ...     lambda x: 1e9 - 0.5 * jnp.sum(x**2), jnp.zeros(2, "float32")
        ... )
        >>> float(PreciseTarget(target, 1e9).log_density(jnp.ones(2, "float32")))
        -1.0
    """

    target: AbstractTarget
    offset: float = eqx.field(static=True)

    @property
    def unwrapped(self) -> AbstractTarget:
        return self.target.unwrapped

    @property
    def log_offset(self) -> float:
        return self.target.log_offset + self.offset

    @property
    def model_warnings(self) -> tuple[str, ...]:
        return self.target.model_warnings

    @property
    def operations_of_call(self) -> int | None:
        return self.target.operations_of_call

    @property
    def particles_at_once(self) -> int | None:
        return self.target.particles_at_once

    def initial_particle(self, key: PRNGKeyArray) -> PyTree:
        return self.target.initial_particle(key)

    def describe(self, x: PyTree) -> dict[str, Array]:
        return self.target.describe(x)

    def thinned(self) -> tuple[AbstractTarget, float] | None:
        return self.target.thinned()

    def log_density(self, particle: PyTree, data: Any = None) -> Scalar:
        vector = self.target.structure.ravel(particle)
        density = Density(self.target, widened=True)
        return _in_double(vector, (density, self.offset)).astype(vector.dtype)


@eqx.filter_custom_vjp
def _in_double(x: Float[Array, " d"], parts: tuple[Density, float]) -> Scalar:
    density, offset = parts
    with double_precision():
        value = density.value(x.astype(jnp.float64))
        return (value - np.float64(offset)).astype(x.dtype)


@_in_double.def_fwd
def _in_double_fwd(perturbed, x, parts):
    density, offset = parts
    # The gradient at once, in the context: a program in double precision cannot be
    # transposed outside of it.
    with double_precision():
        value, gradient = density.value_and_gradient(x.astype(jnp.float64))
        value = (value - np.float64(offset)).astype(x.dtype)
        return value, gradient.astype(x.dtype)


@_in_double.def_bwd
def _in_double_bwd(residuals, cotangent, perturbed, x, parts):
    return cotangent * residuals


def in_enough_precision(key: PRNGKeyArray, report: StartReport) -> StartReport:
    """The same report, for a target in double precision where single is too rough.

    Args:
        key: Random key.
        report: What a start found; without modes nothing is known.
    """
    target = report.target
    if not report.modes or not _can_be_widened(target):
        return report
    mode = report.modes[0]
    noise = numpy_generator(key).normal(size=(_DRAWS, mode.mean.size))
    draws = mode.mean + noise * mode.deviations
    if mode.covariance is not None:
        draws = mode.mean + noise @ factor_of(mode.covariance, 0.0).T
    rounding = rounding_at(key, target, draws)
    if rounding is None or rounding <= THRESHOLDS.max_rounding:
        return report
    density = as_density(target)
    if not density.widened:
        return report
    with density.context():
        height = float(Evaluator(density, 1)(mode.mean[None])[0])
    if not np.isfinite(height):
        return report
    words = (
        f"{report.description}; log densities in double precision, as single rounds "
        f"them by {rounding:.2g}"
    )
    return StartReport(
        PreciseTarget(target, height), report.modes, report.search, words
    )


def _can_be_widened(target: AbstractTarget) -> bool:
    """Whether all that a fit needs of a target is its log density."""
    return (
        not jax.config.jax_enable_x64
        and target.has_gradient
        and target.structure.is_continuous
        and not target.amortised
        and not target.local_sites
        and target.draw_data(host_key(0)) is None
        and not any(jax.tree_util.tree_leaves(target.trainable()))
    )
