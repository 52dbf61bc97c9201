"""Masked autoregressive flow with rational quadratic splines, made for drawing fast.

FlowJAX's masked autoregressive transform recomputes its whole network once per
dimension when it draws. With one hidden layer only the newest input is new in each
pass, so a draw costs as much arithmetic as one density evaluation.

A spline alone cannot leave its interval, so that a guide of splines would cut off every
tail that reaches beyond it without anybody noticing: no particle ever gets there. So
each spline of an unbounded flow is moved and scaled by its network, too. That also
makes Neal's funnel, and with it hierarchical models, a matter of one layer.
"""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar

from softcvi.guides._base import VectorGuide
from softcvi.guides._parameters import as_guide_structure, float_dtype
from softcvi.guides._spline import (
    num_spline_parameters,
    spline_forward,
    spline_inverse,
)
from softcvi.guides._vector import AbstractVectorDistribution
from softcvi.guides._whitened import Whitened

_UNROLL_DIMENSIONS = 8


class SplineFlow(AbstractVectorDistribution):
    """Masked autoregressive spline flow (one hidden layer per flow layer).

    ``log_prob`` is one pass through the networks; ``sample`` has one small step per
    dimension and layer, and gives the log density with the draw.

    Args:
        dim: Number of dimensions.
        key: Random key for the start values.
        layers: Flow layers, each with an order of the dimensions of its own.
        width: Hidden units of each layer's network.
        knots: Inner knots of each spline.
        interval: The splines act on this interval, and are the identity outside.
        uniform_base: Uniform base on ``interval`` instead of a standard normal; then
            the flow is bounded, and its splines are neither moved nor scaled.
        init_scale: Factor on the random start values (0 is the identity).
        dtype: Dtype of the parameters.

    Example:
        >>> import jax
        >>> from softcvi.guides import SplineFlow
        >>> flow = SplineFlow(2, key=jax.random.key(0), layers=2, width=8)
        >>> x, log_prob = flow.sample_and_log_prob(jax.random.key(1))
        >>> abs(float(flow.log_prob(x) - log_prob)) < 1e-3
        True
    """

    w_in: tuple[Float[Array, "width dim"], ...]
    b_in: tuple[Float[Array, " width"], ...]
    w_out: tuple[Float[Array, "dim p width"], ...]
    b_out: tuple[Float[Array, "dim p"], ...]
    orders: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    interval: tuple[float, float] = eqx.field(static=True)
    uniform_base: bool = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    cond_shape: ClassVar[None] = None
    suggested_rate: ClassVar[float] = 2e-3
    is_flow: ClassVar[bool] = True
    has_base: ClassVar[bool] = True

    def __init__(
        self,
        dim: int,
        *,
        key: PRNGKeyArray,
        layers: int = 4,
        width: int = 40,
        knots: int = 8,
        interval: tuple[float, float] = (-5.0, 5.0),
        uniform_base: bool = False,
        init_scale: float = 0.2,
        dtype=None,
    ):
        for name, value in {"layers": layers, "width": width, "knots": knots}.items():
            if value < 1:
                raise ValueError(f"{name}: must be at least 1; got {value}.")
        dtype = jnp.result_type(float) if dtype is None else dtype
        count = num_spline_parameters if uniform_base else num_layer_parameters
        size = count(knots)
        shapes = [(width, dim), (width,), (dim, size, width), (dim, size)]
        bounds = [dim, dim, width, width]
        # One array per layer: a stacked array's slices have padded copies as gradient.
        self.w_in, self.b_in, self.w_out, self.b_out = (
            tuple(
                init_scale
                / math.sqrt(bound)
                * jax.random.uniform(k, shape, dtype, -1, 1)
                for k in jax.random.split(array_key, layers)
            )
            for array_key, shape, bound in zip(
                jax.random.split(key, 4), shapes, bounds, strict=True
            )
        )
        self.orders = _orders(dim, layers)
        self.interval = (float(interval[0]), float(interval[1]))
        self.uniform_base = uniform_base
        self.shape = (dim,)

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        w_in, w_out = self._masked()
        total = jnp.zeros((), x.dtype)
        for layer in range(len(self.orders)):
            hidden = jax.nn.relu(w_in[layer] @ self._as_input(x) + self.b_in[layer])
            raw = w_out[layer] @ hidden + self.b_out[layer]
            x, log_derivative = self._layer_to_base(raw, x)
            total = total + jnp.sum(log_derivative)
        return self._base_log_prob(x) + total

    def _as_input(self, x: Array) -> Array:
        return x if self.uniform_base else compressed(x)

    def _layer_to_base(self, raw: Array, x: Array) -> tuple[Array, Array]:
        """Bounded flows are splines alone, others can move and scale them."""
        if self.uniform_base:
            return spline_forward(raw, x, *self.interval)
        return to_base(raw, x, self.interval)

    def _layer_from_base(self, raw: Array, y: Array) -> tuple[Array, Array]:
        """Undo ``_layer_to_base``; also the log derivative of that there."""
        if self.uniform_base:
            return spline_inverse(raw, y, *self.interval)
        return from_base(raw, y, self.interval)

    def _sample_and_log_prob(
        self, key: PRNGKeyArray, condition: Array | None = None
    ) -> tuple[Array, Scalar]:
        z = self._sample_base(key)
        x, log_det = self._from_base(z)
        return x, self._base_log_prob(z) - log_det

    def _from_base(
        self, z: Float[Array, " d"], condition: Array | None = None
    ) -> tuple[Float[Array, " d"], Scalar]:
        w_in, w_out = self._masked()
        x, total = z, jnp.zeros((), z.dtype)
        for layer in reversed(range(len(self.orders))):
            x, log_det = self._invert_layer(
                x, w_in[layer], w_out[layer], self.b_in[layer], self.b_out[layer], layer
            )
            total = total + log_det
        return x, -total

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        return self._sample_and_log_prob(key)[0]

    def _invert_layer(self, y, w_in, w_out, b_in, b_out, layer):
        """One pass per dimension; each adds only its own input to the hidden layer."""
        order = self.orders[layer]

        def step(hidden, inputs):
            w_in_i, w_out_i, b_out_i, y_i = inputs
            raw = w_out_i @ jax.nn.relu(hidden) + b_out_i
            x_i, log_derivative = self._layer_from_base(raw, y_i)
            return hidden + w_in_i * self._as_input(x_i), (x_i, log_derivative)

        inputs = (w_in.T, w_out, b_out, y)
        if len(order) <= _UNROLL_DIMENSIONS:
            hidden, out = b_in, {}
            for i in order:
                hidden, out[i] = step(hidden, tuple(leaf[i] for leaf in inputs))
            x = jnp.stack([out[i][0] for i in range(len(order))])
            return x, sum(log_derivative for _, log_derivative in out.values())
        index = jnp.asarray(order)
        ordered = tuple(leaf[index] for leaf in inputs)
        _, (x, log_derivatives) = jax.lax.scan(step, b_in, ordered, unroll=4)
        return x[jnp.asarray(np.argsort(order))], jnp.sum(log_derivatives)

    def _masked(self) -> tuple[list[Array], list[Array]]:
        """Weights with the autoregressive masks of each layer's order applied."""
        (dim,), width = self.shape, self.b_in[0].shape[0]
        hidden_rank = np.arange(width) % max(dim - 1, 1)
        dtype = self.b_in[0].dtype
        w_in, w_out = [], []
        for layer, order in enumerate(self.orders):
            rank = np.argsort(order)
            see = hidden_rank[:, None] >= rank[None, :]
            use = rank[:, None, None] > hidden_rank[None, None, :]
            w_in.append(self.w_in[layer] * jnp.asarray(see, dtype))
            w_out.append(self.w_out[layer] * jnp.asarray(use, dtype))
        return w_in, w_out

    @property
    def suggested_clip(self) -> float:  # type: ignore[override]
        """Short for a bounded flow, which can lose a mode by one long step."""
        # It begins spread over its whole box, with gradients in the hundreds.
        return 10.0 if self.uniform_base else 1000.0

    @property
    def covers_reals(self) -> bool:  # type: ignore[override]
        """Whether the base, and so the flow, has the whole space as support."""
        return not self.uniform_base

    @property
    def can_be_matched(self) -> bool:  # type: ignore[override]
        """Whether the flow can be put behind an affine map: not on a given box."""
        return not self.uniform_base

    def matched(
        self, mean: Float[Array, " d"], covariance: Float[Array, "d d"]
    ) -> Whitened | None:
        """This flow behind the affine map to a normal; bounded flows stay put."""
        if self.uniform_base:
            return None
        return Whitened(self, mean, jnp.linalg.cholesky(covariance))

    def _sample_base(self, key: PRNGKeyArray) -> Array:
        if self.uniform_base:
            low, high = self.interval
            return jax.random.uniform(key, self.shape, self.b_in[0].dtype, low, high)
        return jax.random.normal(key, self.shape, self.b_in[0].dtype)

    def _base_log_prob(self, z: Array) -> Scalar:
        if self.uniform_base:
            low, high = self.interval
            inside = jnp.all((z >= low) & (z <= high))
            return jnp.where(inside, -self.shape[0] * math.log(high - low), -jnp.inf)
        return -0.5 * jnp.sum(z**2) - 0.5 * self.shape[0] * math.log(2 * math.pi)


def _orders(dim: int, layers: int) -> tuple[tuple[int, ...], ...]:
    """Order of the dimensions in each layer: as given, then reversed or shuffled."""
    rng = np.random.default_rng(dim)
    orders = [np.arange(dim)]
    for _ in range(layers - 1):
        orders.append(orders[-1][::-1] if dim <= 2 else rng.permutation(dim))
    return tuple(tuple(int(i) for i in order) for order in orders)


def spline_flow(
    target: PyTree,
    *,
    key: PRNGKeyArray,
    layers: int = 4,
    width: int = 40,
    knots: int = 8,
    interval: tuple[float, float] = (-5.0, 5.0),
    uniform_base: bool = False,
) -> VectorGuide:
    """Masked autoregressive spline flow over all scalars of a particle.

    Args:
        target: The target, or a pytree like one particle.
        key: Random key for the start values.
        layers: Flow layers.
        width: Hidden units of each layer's network.
        knots: Inner knots of each spline.
        interval: Where the splines act; outside they are the identity.
        uniform_base: Uniform base on ``interval``, for bounded supports.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> like = {"x": jnp.zeros(3)}
        >>> guide = softcvi.guides.spline_flow(like, key=jax.random.key(0))
        >>> guide.distribution.shape
        (3,)
    """
    structure = as_guide_structure(target)
    flow = SplineFlow(
        structure.size,
        key=key,
        layers=layers,
        width=width,
        knots=knots,
        interval=interval,
        uniform_base=uniform_base,
        dtype=float_dtype(structure),
    )
    return VectorGuide(flow, structure)


# Largest absolute log scale of one layer.
_MAX_LOG_SCALE = 6.0


def num_layer_parameters(knots: int) -> int:
    """Unconstrained numbers that describe one moved and scaled spline."""
    return num_spline_parameters(knots) + 2


def compressed(x: Array) -> Array:
    """Values as a network is given them: large ones grow like a logarithm only."""
    return jnp.arcsinh(x)


def to_base(
    raw: Float[Array, "*shape p"], x: Float[Array, "*shape"], interval: tuple
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Each value through its affine map, then its spline; also the log derivative.

    All-zero ``raw`` is the identity.
    """
    spline, shift, log_scale = _parts(raw)
    y, log_derivative = spline_forward(
        spline, (x - shift) * jnp.exp(-log_scale), *interval
    )
    return y, log_derivative - log_scale


def from_base(
    raw: Float[Array, "*shape p"], y: Float[Array, "*shape"], interval: tuple
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Undo ``to_base``; also the log derivative of ``to_base`` there."""
    spline, shift, log_scale = _parts(raw)
    x, log_derivative = spline_inverse(spline, y, *interval)
    return shift + jnp.exp(log_scale) * x, log_derivative - log_scale


def _parts(raw: Float[Array, "*shape p"]) -> tuple[Array, Array, Array]:
    """Parameters of splines, shifts and bounded log scales."""
    sizes = (raw.shape[-1] - 2, 1, 1)
    spline, shift, log_scale = jax.lax.split(raw, sizes, axis=raw.ndim - 1)
    log_scale = _MAX_LOG_SCALE * jnp.tanh(log_scale[..., 0] / _MAX_LOG_SCALE)
    return spline, shift[..., 0], log_scale
