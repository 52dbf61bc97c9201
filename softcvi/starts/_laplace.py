"""A start for many parameters: mode, curvature and the normal that fits best there.

L-BFGS to the mode, Newton's method with the whole Hessian to its top as long as that
fits into memory, and then a few steps by gradients and Hessians averaged over draws,
which move mean and covariance from those of the top to those of the best normal. With
still more parameters the covariance is a diagonal and the directions in which the
posterior is widest.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.sparse.linalg
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from softcvi._compile import rarely_run
from softcvi.starts._base import AbstractStart, Moments, SearchEvidence, StartReport
from softcvi.starts._curvature import Hessians
from softcvi.starts._double import Density, as_density
from softcvi.starts._evaluator import Evaluator
from softcvi.starts._importance import LogDensity
from softcvi.starts._launch import candidates, far_starts, first_finite, own_starts
from softcvi.starts._modes import DIP
from softcvi.starts._refine import MANY_ROUNDS, damped_factor, refined
from softcvi.starts._variational import bound_of, independent_normal
from softcvi.targets import AbstractTarget
from softcvi.targets._cost import cost_of
from softcvi.targets._numpy_random import numpy_generator

MAX_DENSE_DIM = 2000
# Elementary operations of a Hessian, for which parameters may be twice as many: about a
# second on two cores.
_CHEAP_HESSIAN = 1e10
_SCALES = (1.0, 3.0, 10.0)
_STARTS = 4
_LBFGS_STEPS = 150
_NEWTON_STEPS = 25
_POINTS = 64
_LINE = 17
# Variance of log densities over those of the start's normal, per parameter, above which
# it does not fit; of whole particles the density itself has a half.
_MISFIT = 0.1


class Laplace(AbstractStart):
    """The normal at the highest mode, improved by averages over its own draws.

    Args:
        max_dense: Number of parameters up to which the covariance is a matrix; twice
            as many where a Hessian takes few operations, as it does in models of time.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(
        ...     lambda x: -0.5 * jnp.sum((x - 3.0) ** 2), jnp.zeros(200)
        ... )
        >>> report = softcvi.starts.Laplace().find(jax.random.key(0), target)
        >>> bool(abs(report.modes[0].mean - 3.0).max() < 1e-3)
        True
    """

    max_dense: int = eqx.field(static=True, default=MAX_DENSE_DIM)

    def find(self, key: PRNGKeyArray, target: AbstractTarget) -> StartReport:
        density = as_density(target)
        rng, size = numpy_generator(key), target.structure.size
        own = own_starts(key, target, candidates(_STARTS // 2))
        with density.context():
            log_density = Evaluator.of(density, _POINTS)
            far = far_starts(rng, _SCALES, size, candidates(_STARTS // 2))
            starts = [first_finite(x, _STARTS // 2, log_density) for x in (own, far)]
            begin = jnp.asarray(np.concatenate(starts), density.dtype)
            ends, settled = map(np.asarray, _ascend(begin, density))
            ends = ends.astype(np.float64)
            heights = log_density(ends)
            if not np.any(np.isfinite(heights)):
                words = "no path reached a finite density: start-up by label ESS"
                return StartReport(target, description=words)
            ranks = np.argsort(np.where(np.isfinite(heights), -heights, np.inf))
            ends, settled = ends[ranks], settled[ranks]
            is_dense = self._is_dense(density)
            if not is_dense:
                # No Newton's method takes these to a top: a lower path that was cut
                # short has not found a mode.
                ends = ends[settled | (np.arange(len(ends)) == 0)]
            hessians = Hessians(density)

            def describe(x: np.ndarray) -> tuple[Moments, bool]:
                if is_dense:
                    return _dense(x, log_density, hessians)
                return low_rank_moments(x, density), True

            first, _ = describe(ends[0])
            instead = self._without_mode(begin, first, log_density, hessians)
            if instead is None:
                # Only now, as Newton's method goes on for long where there is no mode.
                modes, counts = _separate(ends, first, log_density, describe)
                modes.sort(key=lambda mode: -(mode.log_evidence or 0.0))
                if modes[0] is not first:
                    instead = self._without_mode(begin, modes[0], log_density, hessians)
        if instead is not None:
            words = "the normal of independent parameters with the highest bound, "
            words += "then curvature: a mode is far from the mean"
            return StartReport(target, (instead,), description=words)
        once = sum(count == 1 for count in counts) if len(modes) > 1 else 0
        search = SearchEvidence(
            num_starts=_STARTS,
            num_places=len(modes),
            num_seen_once=once,
            scales=_SCALES,
            smallest_feature=None,
            missing_mass=once / _STARTS,
        )
        words = f"{len(modes)} mode(s) found by {_STARTS} L-BFGS paths, then curvature"
        search = log_density.with_infinite(search, modes)
        return StartReport(target, tuple(modes), search, words)

    def glimpse(self, key: PRNGKeyArray, target: AbstractTarget) -> StartReport:
        density = as_density(target)
        own = own_starts(key, target, candidates(1))
        with density.context():
            start = first_finite(own, 1, Evaluator.of(density, _POINTS))[0]
            mean, scale = independent_normal(start, density)
        mode = Moments(mean, scale=scale, factor=np.zeros((mean.size, 0)))
        return StartReport(target, (mode,), description="a glimpse")

    def _is_dense(self, density: Density) -> bool:
        size = density.target.structure.size
        if size <= self.max_dense:
            return True
        cost = 3 * size * cost_of(density.program())
        return size <= 2 * self.max_dense and cost <= _CHEAP_HESSIAN

    def _without_mode(
        self,
        starts: Any,
        mode: Moments,
        log_density: Evaluator,
        hessians: Hessians,
    ) -> Moments | None:
        """Moments found by the bound alone, where those of a mode do not fit."""
        bound, density = bound_of(mode, log_density), hessians.density
        if bound.variance < _MISFIT * mode.mean.size:
            return None
        mean, scale = independent_normal(np.asarray(starts, np.float64)[0], density)
        if not np.all(np.isfinite(mean)):
            return None
        found = Moments(mean, scale=scale, factor=np.zeros((mean.size, 0)))
        if mode.covariance is not None:
            narrow = np.diag(1 / scale)
            x, factor = refined(
                mean, narrow, log_density, hessians, most_rounds=MANY_ROUNDS
            )
            found = _with_precision(x, factor)
        else:
            wide = low_rank_moments(mean, density)
            found = max(
                (found, wide), key=lambda moments: bound_of(moments, log_density).elbo
            )
        elbo = bound_of(found, log_density).elbo
        if not elbo > bound.elbo:
            return None
        return dataclasses.replace(found, log_evidence=elbo)


def _separate(
    ends: np.ndarray,
    first: Moments,
    log_density: LogDensity,
    describe: Callable[[np.ndarray], tuple[Moments, bool]],
) -> tuple[list[Moments], list[int]]:
    """Moments at every end that a dip separates from known ones; the highest first.

    A path that was cut short is no mode: where it leads, and to what mass, is unknown.
    """
    modes, counts = [first], [1]

    def known(x: np.ndarray) -> int | None:
        for i, mode in enumerate(modes):
            steps = np.linspace(0.0, 1.0, _LINE)[:, None]
            values = log_density(mode.mean + steps * (x - mode.mean))
            values = np.where(np.isnan(values), -np.inf, values)
            if min(values[0], values[-1]) - np.min(values) <= DIP:
                return i
        return None

    for end in ends[1:]:
        if not np.all(np.isfinite(end)):
            continue
        place = known(end)
        if place is None:
            mode, is_top = describe(end)
            if not is_top:
                continue
            place = known(mode.mean)  # Newton's method may have gone on to one of them
        if place is None:
            modes.append(mode)
            counts.append(1)
        else:
            counts[place] += 1
    return modes, counts


def _dense(
    x: np.ndarray, log_density: Evaluator, hessians: Hessians
) -> tuple[Moments, bool]:
    """Newton's method, the best normal around its end, and whether that is a top."""
    factor, damping, is_top = np.eye(x.size), 0.0, False
    for _ in range(_NEWTON_STEPS):
        hessian, gradient = hessians.at(x)
        if not np.all(np.isfinite(hessian)):
            break
        factor, damping = damped_factor(-hessian, damping)
        step = scipy.linalg.cho_solve((factor, True), gradient)
        sizes = np.concatenate([[0.0], 2.0 ** -np.arange(-1.0, 20.0)])
        values = log_density(x + sizes[:, None] * step)
        best = int(np.argmax(np.where(np.isnan(values), -np.inf, values)))
        x = x + sizes[best] * step
        decrement = float(gradient @ step)
        # Where the density gains what a normal would, the Hessian stays as it is.
        is_normal = sizes[best] == 1.0 and (
            abs(values[best] - values[0] - 0.5 * decrement) < 1e-3
        )
        is_top = bool(is_normal or abs(decrement) < 0.05**2)
        if best == 0 or is_top:
            break
    top = float(log_density(x[None])[0])
    log_det = -np.sum(np.log(np.diagonal(factor)))
    evidence = top + 0.5 * x.size * math.log(2 * math.pi) + log_det
    x, factor = refined(x, factor, log_density, hessians)
    return _with_precision(x, factor, evidence), is_top


def _with_precision(
    x: np.ndarray, factor: np.ndarray, log_evidence: float | None = None
) -> Moments:
    inverse = scipy.linalg.solve_triangular(factor, np.eye(x.size), lower=True)
    return Moments(x, inverse.T @ inverse, log_evidence=log_evidence)


@functools.partial(rarely_run, effort=1)
def _ascend(
    starts: Float[Array, "b d"], density: Density
) -> tuple[Float[Array, "b d"], Bool[Array, " b"]]:
    """Where the paths end, and whether they gained nothing more there."""
    return jax.vmap(lambda start: _lbfgs(density, start))(starts)


def _lbfgs(
    density: Density, start: Float[Array, " d"]
) -> tuple[Float[Array, " d"], Bool[Array, ""]]:
    import optax  # where it is used, for a quick start

    # The gradient of the density's own making, not that of the program in double
    # precision, which knows nothing of the model's rules for derivatives.
    @jax.custom_jvp
    def loss(x):
        value = density.value(x)
        return jnp.where(jnp.isfinite(value), -value, jnp.inf)

    @loss.defjvp
    def _(primals, tangents):
        value, gradient = density.value_and_gradient(*primals)
        return jnp.where(jnp.isfinite(value), -value, jnp.inf), -gradient @ tangents[0]

    optimiser = optax.lbfgs(memory_size=20)
    from_state = optax.value_and_grad_from_state(loss)

    def body(carry):
        x, state, step, _ = carry
        value, gradient = from_state(x, state=state)
        updates, state = optimiser.update(
            gradient, state, x, value=value, grad=gradient, value_fn=loss
        )
        new = optax.apply_updates(x, updates)
        usable = jnp.all(jnp.isfinite(new))
        new_value = optax.tree.get(state, "value")
        gain = value - new_value
        done = ~usable | ~(gain > 1e-6 * (1.0 + jnp.abs(new_value)))
        return jnp.where(usable, new, x), state, step + 1, done

    carry = (start, optimiser.init(start), 0, jnp.asarray(False))
    end = jax.lax.while_loop(lambda c: (c[2] < _LBFGS_STEPS) & ~c[3], body, carry)
    return end[0], end[3]


_PROBES = 32
_RANK = 30


def low_rank_moments(x: Float[np.ndarray, " d"], density: Density) -> Moments:
    """Moments at a mode by products of the Hessian with vectors alone.

    Args:
        x: The mode.
        density: The density.
    """
    rng = np.random.default_rng(0)
    point = jnp.asarray(x, density.dtype)
    probes = rng.choice([-1.0, 1.0], size=(_PROBES, x.size))
    products = np.asarray(_products(point, jnp.asarray(probes, point.dtype), density))
    diagonal = np.mean(-products * probes, axis=0)
    typical = np.median(np.abs(diagonal)) + np.finfo(float).tiny
    scale = 1.0 / np.sqrt(np.maximum(diagonal, 1e-6 * typical))

    def scaled(v: np.ndarray) -> np.ndarray:
        vector = jnp.asarray((scale * v.ravel())[None], point.dtype)
        return -scale * np.asarray(_products(point, vector, density), np.float64)[0]

    operator = scipy.sparse.linalg.LinearOperator((x.size, x.size), matvec=scaled)
    try:
        values, vectors = scipy.sparse.linalg.eigsh(
            operator,
            k=min(_RANK, x.size - 2),
            which="SA",
            tol=1e-2,
            maxiter=20,
            v0=rng.normal(size=x.size),
        )
    except scipy.sparse.linalg.ArpackNoConvergence as error:
        values, vectors = error.eigenvalues, error.eigenvectors
    values = np.maximum(values, 1e-6)
    wide = np.sqrt(np.maximum(1.0 / values - 1.0, 0.0))
    factor = scale[:, None] * vectors * wide
    return Moments(x, None, scale=scale, factor=factor)


@rarely_run
def _products(
    x: Float[Array, " d"], vectors: Float[Array, "n d"], density: Density
) -> Float[Array, "n d"]:
    return jax.lax.map(lambda v: density.gradient_and_product(x, v)[1], vectors)
