"""Targets that run outside JAX: anything callable, perhaps on an executor."""

import math
import time
from collections.abc import Callable
from concurrent.futures import Executor, TimeoutError
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray, PyTree, Scalar

from softcvi.targets import AbstractSpace, AbstractTarget, ModelSpace, Structure


class Parallel:
    """A function of many particles that evaluates them by an executor, one by one.

    Failures and time-outs have no density: a log density of minus infinity, so that
    their labels are zero and the others compete without them.

    Args:
        fn: Function of one particle; for processes it must be possible to pickle it.
        executor: With ``submit``, as those of ``concurrent.futures``, a Dask client or
            an MPI pool.
        timeout: Seconds until an evaluation counts as failed; None waits for all.
        failures: Where to count what failed; a dictionary by the type of failure.
    """

    def __init__(
        self,
        fn: Callable,
        executor: Executor,
        timeout: float | None,
        failures: dict[str, int],
    ):
        self.fn = fn
        self.executor = executor
        self.timeout = timeout
        self.failures = failures

    def __call__(self, particles: list[Any]) -> np.ndarray:
        """Log densities of particles, in their order."""
        futures = [self.executor.submit(self.fn, particle) for particle in particles]
        began = time.monotonic()
        return np.array([self._value(future, began) for future in futures])

    def _value(self, future: Any, began: float) -> float:
        left = None
        if self.timeout is not None:
            # All have been running since the first was asked for.
            left = max(self.timeout - (time.monotonic() - began), 0.0)
        try:
            return float(future.result(timeout=left))
        except TimeoutError:
            future.cancel()
            self._count("time-out")
        except Exception as error:
            self._count(type(error).__name__)
        return -np.inf

    def _count(self, kind: str) -> None:
        self.failures[kind] = self.failures.get(kind, 0) + 1


class CallbackTarget(AbstractTarget):
    """A log density that is called on the host; made by ``from_callable``.

    Attributes:
        fn: Function of NumPy arrays.
        vectorized: Whether ``fn`` takes all particles at once.
        parallel: How particles are evaluated side by side, None for one by one.
        failures: Evaluations on an executor that failed, counted by kind.

    Example:
        >>> import numpy as np
        >>> from softcvi.adapters import from_callable
        >>> like = {"a": np.zeros(())}
        >>> target = from_callable(lambda x: -float(x["a"]) ** 2, like=like)
        >>> target.has_gradient
        False
    """

    fn: Callable = eqx.field(static=True)
    vectorized: bool = eqx.field(static=True)
    structure: Structure = eqx.field(static=True)
    space: AbstractSpace
    initial: Callable | None = eqx.field(static=True)
    sizes: tuple[tuple[str, int], ...] = eqx.field(static=True)
    has_gradient: bool = eqx.field(static=True, default=False)
    parallel: Parallel | None = eqx.field(static=True, default=None)

    @property
    def failures(self) -> dict[str, int]:
        return {} if self.parallel is None else dict(self.parallel.failures)

    def log_density(self, particle: PyTree, data: Any = None) -> Scalar:
        x, log_det = self.space.to_model_and_log_det(particle)
        return self._call(x) + log_det

    def initial_particle(self, key: PRNGKeyArray) -> PyTree:
        if self.initial is None:
            return super().initial_particle(key)
        return self.initial(key)

    def num_values(self) -> dict[str, int]:
        return dict(self.sizes)

    def _call(self, x: PyTree) -> Array:
        dtype = jnp.result_type(float)
        host = _HostFunction(
            self.fn, self.vectorized, self.parallel, x, np.dtype(dtype)
        )
        out = jax.ShapeDtypeStruct((), dtype)
        return jax.pure_callback(host, out, x, vmap_method="broadcast_all")


class _HostFunction:
    """Calls the user's function on a batch, whatever axes JAX has put in front."""

    def __init__(
        self,
        fn: Callable,
        vectorized: bool,
        parallel: Parallel | None,
        one: PyTree,
        dtype: np.dtype,
    ):
        leaves, self.treedef = jax.tree_util.tree_flatten(one)
        self.fn = fn
        self.vectorized = vectorized
        self.parallel = parallel
        self.shapes = [jnp.shape(leaf) for leaf in leaves]
        self.dtype = dtype

    def __call__(self, x: PyTree) -> np.ndarray:
        leaves = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(x)]
        batch = leaves[0].shape[: leaves[0].ndim - len(self.shapes[0])]
        count = math.prod(batch)
        flat = [
            leaf.reshape(count, *shape)
            for leaf, shape in zip(leaves, self.shapes, strict=True)
        ]
        return self._evaluate(flat, count).reshape(batch)

    def _evaluate(self, leaves: list[np.ndarray], count: int) -> np.ndarray:
        if self.vectorized:
            out = self.fn(jax.tree_util.tree_unflatten(self.treedef, leaves))
            out = np.asarray(out, self.dtype)
            if out.shape != (count,):
                raise ValueError(
                    f"from_callable: {_name(self.fn)} got {count} particles and "
                    f"returned an array of shape {out.shape}; shape ({count},) needed. "
                    "With vectorized=False it is called on one particle at a time."
                )
            return out
        particles = [
            jax.tree_util.tree_unflatten(self.treedef, [leaf[i] for leaf in leaves])
            for i in range(count)
        ]
        if self.parallel is not None:
            return self.parallel(particles).astype(self.dtype)
        out = np.empty(count, self.dtype)
        for i, particle in enumerate(particles):
            value = self.fn(particle)
            if np.ndim(value):
                raise ValueError(
                    f"from_callable: {_name(self.fn)} must return one number per "
                    f"particle; it returned an array of shape {np.shape(value)}."
                )
            out[i] = value
        return out


def from_callable(
    fn: Callable,
    like: PyTree,
    *,
    vectorized: bool = False,
    space: AbstractSpace | None = None,
    initial: Callable | None = None,
    num_values: dict[str, int] | None = None,
    executor: Executor | None = None,
    timeout: float | None = None,
) -> CallbackTarget:
    """A target from a function that JAX cannot look into.

    The function is called from inside the compiled loop with NumPy arrays. It may
    round, branch, or run a C library: SoftCVI needs no gradient of it. If it raises in
    the middle of a fit, ``softcvi.fit`` raises a ``FitError`` whose ``result`` holds
    what was fitted until then.

    Args:
        fn: Function from one particle in model coordinates (a pytree of NumPy arrays
            as ``like``) to its unnormalised log density. It must not call JAX.
        like: One particle in the fitting space. Integer leaves are discrete.
        vectorized: ``fn`` takes arrays with a leading axis of particles, and returns
            one number for each.
        space: Where the fit happens; model coordinates by default.
        initial: Function of a JAX key that draws a starting point.
        num_values: For discrete leaves, how many values each can take.
        executor: Evaluates particles side by side: an executor of
            ``concurrent.futures``, or a ``dask.distributed.Client``. An evaluation
            that raises or takes too long counts as no density there, and the fit goes
            on; ``target.failures`` says how many there were, by kind.
        timeout: With an executor, seconds until an evaluation has taken too long.

    Example:
        >>> import jax, numpy as np, softcvi
        >>> from softcvi.adapters import from_callable
        >>> def log_density(x):  # a NumPy function with a branch in it
        ...     return -0.5 * x["a"] ** 2 if x["a"] > 0 else -2.0 * x["a"] ** 2
        >>> target = from_callable(log_density, like={"a": np.zeros(())})
        >>> float(target.log_density({"a": np.float32(-1.0)}))
        -2.0
    """
    if not callable(fn):
        raise TypeError(
            f"fn: expected a function of one particle; got {type(fn).__name__}."
        )
    if executor is None and timeout is not None:
        raise ValueError("timeout: needs an executor, which can leave a call behind.")
    if executor is not None and vectorized:
        raise ValueError("executor: takes one particle per call; use vectorized=False.")
    return CallbackTarget(
        fn=fn,
        vectorized=vectorized,
        structure=Structure(like),
        space=ModelSpace() if space is None else space,
        initial=initial,
        sizes=tuple((num_values or {}).items()),
        parallel=None if executor is None else Parallel(fn, executor, timeout, {}),
    )


def _name(fn: Callable) -> str:
    return getattr(fn, "__name__", type(fn).__name__)
