"""A target given as a plain JAX function."""

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, PRNGKeyArray, PyTree, Scalar

from softcvi._compile import traced_once
from softcvi.targets._base import AbstractTarget, as_log_density, check_observed
from softcvi.targets._derivatives import num_derivatives, twice_if_asked
from softcvi.targets._funnel import FunnelSpace, through_funnel
from softcvi.targets._read_now import as_read_now
from softcvi.targets._space import AbstractSpace, ModelSpace
from softcvi.targets._structure import Structure, as_structure


class DensityTarget(AbstractTarget):
    """A posterior given by a JAX function of one particle.

    Args:
        log_prob: Function of one particle in the *model's* coordinates (and of
            ``observed``, if that is given), returning the scalar unnormalised log
            density. It may be a callable pytree (an ``equinox.Module``), whose
            arrays then are model parameters for ``WithModelTerm``.
        like: One particle in the *fitting* space: a pytree of arrays or
            ``jax.ShapeDtypeStruct``.
        space: Where the fit happens; the log Jacobian is added by the target.
        observed: Optional pytree of arrays passed to ``log_prob`` as second
            argument. Targets that differ only in ``observed`` share one compiled
            program, and can be stacked for ``fit_many``.
        initial: Optional function of a key that draws a starting point in the
            fitting space, for example a prior draw.
        describe_with: Optional function from one particle in model coordinates to
            a dict of named arrays, to rename or to add derived quantities.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(
        ...     lambda theta: -0.5 * jnp.sum((theta["x"] - 1.0) ** 2),
        ...     like={"x": jnp.zeros(2)},
        ... )
        >>> float(target.log_density({"x": jnp.ones(2)}))
        0.0
    """

    maps_by_space: ClassVar[bool] = True

    log_prob: Callable
    structure: Structure = eqx.field(static=True)
    space: AbstractSpace
    observed: PyTree
    has_gradient: bool = eqx.field(static=True)
    has_hessian: bool = eqx.field(static=True)
    initial: Callable | None
    describe_with: Callable | None

    def __init__(
        self,
        log_prob: Callable,
        like: PyTree,
        *,
        space: AbstractSpace | None = None,
        observed: PyTree = None,
        initial: Callable | None = None,
        describe_with: Callable | None = None,
    ):
        if not callable(log_prob):
            raise TypeError(
                "log_prob: expected a function of one particle; got "
                f"{type(log_prob).__name__}."
            )
        self.log_prob = as_read_now(log_prob)
        self.structure = as_structure(like)
        self.space = ModelSpace() if space is None else space
        self.observed = observed
        self.initial = initial
        self.describe_with = describe_with
        self.has_hessian = True  # until it is known
        is_continuous = self.structure.is_continuous
        known = num_derivatives(self.log_density, self.like) if is_continuous else 0
        self.has_gradient = known > 0
        self.has_hessian = known != 1

    def in_space(self, space: AbstractSpace) -> "AbstractTarget":
        if not isinstance(space, FunnelSpace):
            return self
        return through_funnel(self.in_space(space.inner), space)

    def log_density(self, particle: PyTree, data: Any = None) -> Scalar:
        return _log_density(self, particle)

    def with_observed(self, observed: PyTree) -> "DensityTarget":
        if self.observed is None:
            raise ValueError(
                "target: its observed is None; pass DensityTarget(log_prob, like, "
                "observed=data) so that the data can be replaced."
            )
        check_observed(observed, self.observed)
        return eqx.tree_at(lambda t: t.observed, self, observed)

    def initial_particle(self, key: PRNGKeyArray) -> PyTree:
        if self.initial is None:
            return super().initial_particle(key)
        return self.initial(key)

    def describe(self, x: PyTree) -> dict[str, Array]:
        return super().describe(
            x if self.describe_with is None else self.describe_with(x)
        )

    def trainable(self) -> PyTree:
        frozen = jax.tree_util.tree_map(lambda _: False, self)
        model = jax.tree_util.tree_map(eqx.is_inexact_array, self.log_prob)
        return eqx.tree_at(lambda t: t.log_prob, frozen, model)


@twice_if_asked
@functools.partial(traced_once, outside=False)
def _log_density(target: DensityTarget, particle: PyTree) -> Scalar:
    x, log_det = target.space.to_model_and_log_det(particle)
    args = () if target.observed is None else (target.observed,)
    return as_log_density(target.log_prob(x, *args)) + log_det
