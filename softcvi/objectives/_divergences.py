"""Divergences between labels and predictions (appendix on alternative divergences)."""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar


class AbstractDivergence(eqx.Module):
    """How far the predicted categorical distribution is from the labels.

    To add one, write ``__call__``: log labels and log predictions in, a scalar out
    that is smallest where they agree.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> class Brier(softcvi.objectives.AbstractDivergence):
        ...     def __call__(self, log_labels, log_predictions):
        ...         gap = jnp.exp(log_labels) - jnp.exp(log_predictions)
        ...         return jnp.sum(gap**2)
        >>> log_y = jnp.log(jnp.array([0.5, 0.5]))
        >>> float(Brier()(log_y, log_y))
        0.0
    """

    @abstractmethod
    def __call__(
        self, log_labels: Float[Array, " k"], log_predictions: Float[Array, " k"]
    ) -> Scalar:
        """The divergence, up to terms that do not depend on the predictions."""


def _times(probability: Array, other: Array) -> Array:
    """Product in which probability zero wins over infinity."""
    return jnp.where(
        probability > 0, probability * jnp.where(probability > 0, other, 0), 0
    )


class ForwardKL(AbstractDivergence):
    """Cross-entropy, the paper's choice: forward KL up to the labels' entropy.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> log_y = jnp.log(jnp.array([0.5, 0.5]))
        >>> round(float(softcvi.ForwardKL()(log_y, log_y)), 4)
        0.6931
    """

    def __call__(self, log_labels, log_predictions):
        return -jnp.sum(_times(jnp.exp(log_labels), log_predictions))


class ReverseKL(AbstractDivergence):
    """Reverse KL: seeks modes among the particles.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> log_y = jnp.log(jnp.array([0.5, 0.5]))
        >>> float(softcvi.ReverseKL()(log_y, log_y))
        0.0
    """

    def __call__(self, log_labels, log_predictions):
        # Labels of zero would make it infinite: they are floored at the dtype's tiny.
        floor = jnp.log(jnp.finfo(log_labels.dtype).tiny)
        gap = log_predictions - jnp.maximum(log_labels, floor)
        return jnp.sum(jnp.exp(log_predictions) * gap)


class JensenShannon(AbstractDivergence):
    """Jensen-Shannon divergence: symmetric and bounded.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> log_y = jnp.log(jnp.array([0.5, 0.5]))
        >>> float(softcvi.JensenShannon()(log_y, log_y))
        0.0
    """

    def __call__(self, log_labels, log_predictions):
        log_mid = jnp.logaddexp(log_labels, log_predictions) - jnp.log(2.0)
        forward = _times(jnp.exp(log_labels), log_labels - log_mid)
        reverse = _times(jnp.exp(log_predictions), log_predictions - log_mid)
        return 0.5 * jnp.sum(forward + reverse)


class Alpha(AbstractDivergence):
    """The alpha divergence of Amari, between reverse KL (0) and forward KL (1).

    Args:
        a: Order, other than 0 and 1 (use ``ReverseKL`` and ``ForwardKL`` there).

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> log_y = jnp.log(jnp.array([0.5, 0.5]))
        >>> abs(float(softcvi.Alpha(0.5)(log_y, log_y))) < 1e-6
        True
    """

    a: float = 0.5

    def __check_init__(self):
        if self.a in (0, 1):
            raise ValueError(
                f"a: {self.a} is a limit of the family; use ReverseKL() for 0 and "
                "ForwardKL() for 1."
            )

    def __call__(self, log_labels, log_predictions):
        log_sum = jax.nn.logsumexp(self.a * log_labels + (1 - self.a) * log_predictions)
        return (jnp.exp(log_sum) - 1) / (self.a * (self.a - 1))


class ChiSquared(AbstractDivergence):
    """Pearson's chi-squared divergence of the labels from the predictions.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> log_y = jnp.log(jnp.array([0.5, 0.5]))
        >>> abs(float(softcvi.ChiSquared()(log_y, log_y))) < 1e-6
        True
    """

    def __call__(self, log_labels, log_predictions):
        return jnp.expm1(jax.nn.logsumexp(2 * log_labels - log_predictions))


class FDivergence(AbstractDivergence):
    """The f-divergence ``sum_k Q(k) f(P(k) / Q(k))`` of a convex f with f(1) = 0.

    Args:
        f: Convex function of a positive scalar, differentiable by JAX.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> hellinger = softcvi.FDivergence(lambda t: (jnp.sqrt(t) - 1) ** 2)
        >>> log_y = jnp.log(jnp.array([0.5, 0.5]))
        >>> float(hellinger(log_y, log_y))
        0.0
    """

    f: Callable[[Array], Array]

    def __check_init__(self):
        # Objectives may be made inside a compiled function; this is a plain number.
        with jax.ensure_compile_time_eval():
            at_one = float(self.f(jnp.ones(())))
        if abs(at_one) > 1e-5:
            raise ValueError(
                f"f: an f-divergence needs f(1) = 0; this one gives {at_one:.3g}. "
                "Subtract that constant."
            )

    def __call__(self, log_labels, log_predictions):
        # The ratio is kept away from 0, where derivatives such as sqrt's blow up.
        tiny = jnp.finfo(log_labels.dtype).tiny
        ratio = jnp.maximum(jnp.exp(log_labels - log_predictions), tiny)
        return jnp.sum(jnp.exp(log_predictions) * self.f(ratio))
