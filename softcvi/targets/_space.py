"""Spaces: bijections between the space of the fit and the model's own coordinates."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from flowjax import bijections as bij
from flowjax.bijections import AbstractBijection
from jaxtyping import Array, Float, PyTree, Scalar

from softcvi.targets._informed import Informed


class AbstractSpace(eqx.Module):
    """A bijection from the fitting space (u) to the model's coordinates (x).

    With a negative other than the proposal itself the objective depends on the
    coordinates (a non-affine change adds ``(1 - alpha) log|J|`` to every logit), so
    each result states its space.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> class Shifted(softcvi.targets.AbstractSpace):
        ...     def to_model_and_log_det(self, u):
        ...         return u + 1.0, jnp.zeros(())
        ...
        ...     def from_model_and_log_det(self, x):
        ...         return x - 1.0, jnp.zeros(())
        >>> float(Shifted().to_model(jnp.array(1.0)))
        2.0
    """

    @abstractmethod
    def to_model_and_log_det(self, u: PyTree) -> tuple[PyTree, Scalar]:
        """Map one particle to model coordinates, with ``log |dx/du|``."""

    @abstractmethod
    def from_model_and_log_det(self, x: PyTree) -> tuple[PyTree, Scalar]:
        """Map one particle to the fitting space, with ``log |du/dx|``."""

    def to_model(self, u: PyTree) -> PyTree:
        """Map one particle to model coordinates."""
        return self.to_model_and_log_det(u)[0]

    def stored(self) -> "AbstractSpace":
        """What a file keeps of this space: itself, unless only a model knows it."""
        return self

    @property
    def needs_model(self) -> bool:
        """Whether the map needs the model that it belongs to."""
        return False


def lost_in_rounding(z: Float[Array, "..."], again: Float[Array, "..."]) -> Scalar:
    """Log density that standardised values lose where their own ones are rounded.

    Where a scale is tiny beside its location, ``location + scale * z`` is rounded to
    the location, and a prior that is computed from it does not depend on ``z`` at all:
    a hierarchy gets a mode of infinite mass at a scale of zero. Added to the log
    Jacobian, this gives its normal prior back. It is zero where nothing is lost.

    Args:
        z: Standardised values.
        again: The same, computed back from the rounded ones.
    """
    return 0.5 * jnp.sum(again**2 - z**2)


class ModelSpace(AbstractSpace):
    """The model's own coordinates: nothing is transformed.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> x, log_det = softcvi.targets.ModelSpace().to_model_and_log_det(jnp.ones(2))
        >>> float(log_det)
        0.0
    """

    def to_model_and_log_det(self, u: PyTree) -> tuple[PyTree, Scalar]:
        return u, jnp.zeros(())

    def from_model_and_log_det(self, x: PyTree) -> tuple[PyTree, Scalar]:
        return x, jnp.zeros(())


class SpaceOfModel(AbstractSpace):
    """Stands in a file for a space that takes the model to go through.

    Args:
        decentred: Names of the sites that are fitted in standardised coordinates.
        informed: What the data say of them, by name, where these coordinates use it.

    Example:
        >>> import softcvi
        >>> softcvi.targets.SpaceOfModel(("theta",)).decentred
        ('theta',)
    """

    decentred: tuple[str, ...] = eqx.field(static=True, default=())
    informed: Mapping[str, Informed] = eqx.field(default_factory=dict)

    @property
    def needs_model(self) -> bool:
        return True

    def to_model_and_log_det(self, u: PyTree) -> tuple[PyTree, Scalar]:
        raise ValueError("space: only the model knows the way; give the target.")

    def from_model_and_log_det(self, x: PyTree) -> tuple[PyTree, Scalar]:
        raise ValueError("space: only the model knows the way; give the target.")


class UnconstrainedSpace(AbstractSpace):
    """Unconstrained space: named sites go through bijections, the rest stay.

    Args:
        bijections: Mapping from site name to a FlowJAX bijection of shape ``()``
            (applied elementwise) or of the site's shape, from unconstrained to
            model coordinates. See ``positive`` and ``interval``.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> space = softcvi.targets.UnconstrainedSpace(
        ...     {"tau": softcvi.targets.positive()}
        ... )
        >>> x, log_det = space.to_model_and_log_det({"mu": 1.0, "tau": jnp.zeros(())})
        >>> float(x["tau"]), float(log_det)
        (1.0, 0.0)
    """

    bijections: dict[str, AbstractBijection]

    def __init__(self, bijections: Mapping[str, AbstractBijection]):
        for name, bijection in bijections.items():
            if not isinstance(bijection, AbstractBijection):
                raise TypeError(
                    f"bijections['{name}']: expected a FlowJAX bijection such as "
                    f"softcvi.targets.positive(); got {type(bijection).__name__}."
                )
        self.bijections = dict(bijections)

    def to_model_and_log_det(self, u: dict) -> tuple[dict, Scalar]:
        return self._apply(u, "transform_and_log_det")

    def from_model_and_log_det(self, x: dict) -> tuple[dict, Scalar]:
        return self._apply(x, "inverse_and_log_det")

    def _apply(self, values: dict, method: str) -> tuple[dict, Scalar]:
        if not isinstance(values, Mapping):
            raise TypeError(
                "space: UnconstrainedSpace names its sites, so the particle must be "
                "a dict; pass like={'name': ...}."
            )
        unknown = set(self.bijections) - set(values)
        if unknown:
            raise ValueError(
                f"space: bijections for {sorted(unknown)}, but the particle only has "
                f"{sorted(values)}. Check the names in UnconstrainedSpace."
            )
        out: dict[str, Any] = dict(values)
        total = jnp.zeros(())
        for name, bijection in self.bijections.items():
            value = jnp.asarray(values[name])
            out[name], log_det = _elementwise(bijection, method, value)
            total = total + log_det
        return out, total


def _elementwise(
    bijection: AbstractBijection, method: str, value: Array
) -> tuple[Array, Scalar]:
    """Apply a bijection, over all elements if it is scalar and the value is not."""
    if bijection.shape == () and value.ndim:
        flat = bij.Vmap(bijection, axis_size=value.size)
        out, log_det = getattr(flat, method)(value.reshape(-1))
        return out.reshape(value.shape), log_det
    return getattr(bijection, method)(value)


def positive() -> AbstractBijection:
    """The bijection for a positive site: ``exp``.

    Example:
        >>> import softcvi
        >>> float(softcvi.targets.positive().transform(0.0))
        1.0
    """
    return bij.Exp(())


def interval(low: float | Float[Array, ""], high: float | Float[Array, ""]):
    """The bijection for a site between two bounds: a scaled sigmoid.

    Args:
        low: Lower bound.
        high: Upper bound, above ``low``.

    Example:
        >>> import softcvi
        >>> float(softcvi.targets.interval(-3.0, 3.0).transform(0.0))
        0.0
    """
    low, high = jnp.asarray(low, float), jnp.asarray(high, float)
    if not bool(jnp.all(high > low)):
        raise ValueError(f"high: must be above low; got low={low}, high={high}.")
    return bij.Chain([bij.Sigmoid(()), bij.Affine(low, high - low)])
