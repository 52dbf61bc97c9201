"""Optimisers and learning-rate schedules.

The number of steps and the rates are traced, so that a longer run or another rate
uses the program that is already compiled.
"""

from abc import abstractmethod
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from softcvi._compile import as_array, kept_or_new

if TYPE_CHECKING:  # and imported where it is used, for a quick start
    import optax

# The paper's. Where the posterior is narrow every gradient is longer than this, and the
# mean of clipped gradients is not zero where the mean gradient is.
_PAPER_CLIP = 10.0
_CLIP = 1000.0


class AbstractSchedule(eqx.Module):
    """The learning rate of each step.

    Example:
        >>> import softcvi
        >>> class Inverse(softcvi.fitting.AbstractSchedule):
        ...     def __call__(self, step, total):
        ...         return 0.1 / (1.0 + step)
        >>> optimizer = softcvi.fitting.Adam(Inverse())
    """

    @abstractmethod
    def __call__(self, step: Array, total: Array) -> Array:
        """Rate at a step of a run with this many steps in all."""


class WarmupCosine(AbstractSchedule):
    """Linear warm-up to a peak, then cosine decay to zero.

    Args:
        peak: Highest rate.
        warmup: Share of the run spent on the way up.

    Example:
        >>> import softcvi
        >>> schedule = softcvi.fitting.WarmupCosine(0.01)
        >>> round(float(schedule(1000, 1000)), 6)
        0.0
    """

    peak: Float[Array, ""] = eqx.field(converter=jnp.asarray)
    warmup: float = 0.02

    def __call__(self, step, total):
        done = (step + 1) / jnp.maximum(total, 1)
        rising = done / self.warmup
        falling = 0.5 * (1 + jnp.cos(jnp.pi * (done - self.warmup) / (1 - self.warmup)))
        return self.peak * jnp.where(done < self.warmup, rising, falling)


class ConstantRate(AbstractSchedule):
    """The same rate throughout, as in the paper.

    Args:
        rate: The rate.

    Example:
        >>> import softcvi
        >>> round(float(softcvi.fitting.ConstantRate(0.5)(3, 10)), 2)
        0.5
    """

    rate: Float[Array, ""] = eqx.field(converter=jnp.asarray)

    def __call__(self, step, total):
        return self.rate


class AbstractOptimizer(eqx.Module):
    """How a gradient becomes a change of the parameters.

    Example:
        >>> import equinox as eqx, jax, softcvi
        >>> class Descent(softcvi.fitting.AbstractOptimizer):
        ...     flat: bool = eqx.field(static=True, default=False)
        ...
        ...     def init(self, params):
        ...         return None
        ...
        ...     def update(self, grads, state, params, step, total):
        ...         move = lambda p, g: p - 0.1 * g
        ...         return jax.tree.map(move, params, grads), state
        >>> Descent().update(1.0, None, 2.0, 0, 10)
        (1.9, None)
    """

    flat: eqx.AbstractVar[bool]

    @abstractmethod
    def init(self, params: PyTree) -> PyTree:
        """The state before the first step."""

    @abstractmethod
    def update(
        self, grads: PyTree, state: PyTree, params: PyTree, step: Array, total: Array
    ) -> tuple[PyTree, PyTree]:
        """New parameters and state."""

    def guarded_update(
        self,
        grads: PyTree,
        state: PyTree,
        params: PyTree,
        step: Array,
        total: Array,
        usable: Array,
    ) -> tuple[PyTree, PyTree]:
        """New parameters and state, or the old ones where the step is not usable."""
        new = self.update(grads, state, params, step, total)
        return _chosen(usable, new, (params, state))


def _chosen(usable: Array, new: PyTree, old: PyTree) -> PyTree:
    return jax.tree_util.tree_map(
        lambda left, right: jnp.where(usable, left, right), new, old
    )


_DECAYS = (0.9, 0.999)
_EPSILON = 1e-8


class AdamState(eqx.Module):
    """Moments of the gradients so far.

    Attributes:
        count: Usable steps.
        mu: Decaying mean of the gradients.
        nu: Decaying mean of their squares.
    """

    count: Int[Array, ""]
    mu: Float[Array, " n"]
    nu: Float[Array, " n"]

    def after(self, grads: Float[Array, " n"]) -> "AdamState":
        """The moments with one more gradient."""
        return AdamState(
            self.count + 1,
            (1 - _DECAYS[0]) * grads + _DECAYS[0] * self.mu,
            (1 - _DECAYS[1]) * grads**2 + _DECAYS[1] * self.nu,
        )

    def direction(self) -> Float[Array, " n"]:
        """Where to go from here, without the bias of the first steps."""
        first, second = (
            moment / (1 - decay**self.count)
            for moment, decay in zip((self.mu, self.nu), _DECAYS, strict=True)
        )
        return first / (jnp.sqrt(second) + _EPSILON)


class Adam(AbstractOptimizer):
    """Adam with clipped gradients on one flat vector, with a schedule.

    Args:
        schedule: The learning rate of each step.
        clip: Longer gradients are shortened to this norm.

    Example:
        >>> import softcvi
        >>> optimizer = softcvi.fitting.Adam(softcvi.fitting.WarmupCosine(0.01))
    """

    schedule: AbstractSchedule
    clip: Float[Array, ""] = eqx.field(converter=jnp.asarray, default=_CLIP)
    flat: bool = eqx.field(static=True, default=True)

    def init(self, params):
        zeros = as_array(np.zeros(params.shape), params.dtype)
        return AdamState(as_array(0, jnp.int32), zeros, zeros)

    def update(self, grads, state, params, step, total):
        return self.guarded_update(grads, state, params, step, total, True)

    def guarded_update(self, grads, state, params, step, total, usable):
        norm = jnp.sqrt(jnp.sum(jnp.square(grads)))
        grads = grads * jnp.where(norm > self.clip, self.clip / norm, 1.0)
        new = state.after(grads)
        state = _chosen(usable, new, state)
        updates = kept_or_new(state.direction, new.direction())
        move = jnp.where(usable, self.schedule(step, total) * updates, 0.0)
        return params - move, state


class OptaxOptimizer(AbstractOptimizer):
    """Any optax transformation, on the guide's own tree of parameters.

    Args:
        transform: For example ``optax.adamw(1e-3)``.

    Example:
        >>> import optax, softcvi
        >>> optimizer = softcvi.fitting.OptaxOptimizer(optax.sgd(0.1))
    """

    transform: "optax.GradientTransformation" = eqx.field(static=True)
    flat: bool = eqx.field(static=True, default=False)

    def init(self, params):
        return self.transform.init(params)

    def update(self, grads, state, params, step, total):
        import optax

        updates, state = self.transform.update(grads, state, params)
        return optax.apply_updates(params, updates), state


def paper_optimizer(rate: float) -> Adam:
    """Adam at a constant rate with clipping at 10: the paper's recipe.

    Args:
        rate: The learning rate.

    Example:
        >>> import softcvi
        >>> optimizer = softcvi.fitting.paper_optimizer(1e-3)
    """
    return Adam(ConstantRate(checked_rate(rate)), clip=_PAPER_CLIP)


def checked_rate(rate: float) -> float:
    """Refuse rates that cannot work."""
    if not isinstance(rate, int | float) and jnp.ndim(rate) != 0:
        raise TypeError(f"learning_rate: expected a number; got {rate!r}.")
    if not 0 < float(rate) < float("inf"):
        raise ValueError(
            f"learning_rate: must be positive and finite; got {rate}. Leave it out for "
            "the rate that suits the guide."
        )
    return float(rate)


def as_optimizer(
    optimizer,
    learning_rate: float | None,
    suggested_rate: float,
    suggested_clip: float = _CLIP,
) -> AbstractOptimizer:
    """Normalise what the user gave: nothing, a rate, ours, or optax's."""
    if optimizer is not None and learning_rate is not None:
        raise ValueError(
            "learning_rate: the optimizer given has its own; give one of the two."
        )
    if optimizer is None:
        rate = suggested_rate if learning_rate is None else checked_rate(learning_rate)
        return Adam(WarmupCosine(rate), suggested_clip)
    if isinstance(optimizer, AbstractOptimizer):
        return optimizer
    if hasattr(optimizer, "init") and hasattr(optimizer, "update"):
        return OptaxOptimizer(optimizer)
    raise TypeError(
        "optimizer: expected an optax transformation or one of softcvi.fitting; got "
        f"{type(optimizer).__name__}."
    )
