"""How large rounding errors are in the log densities that labels and weights use."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi._compile import as_array, rarely_run
from softcvi.guides import AbstractGuide
from softcvi.targets import AbstractTarget
from softcvi.targets._numpy_random import numpy_generator

LINES = 24
_POINTS = 9
# Lengths of the lines, as shares of the distance between two draws. A smooth function
# is a parabola on both to high accuracy where the guide is near the posterior; where
# it is not, on the shorter one.
LENGTHS = (2e-2, 2e-3)
_PARABOLA = 2
# Kinds of numbers, coarsest first, and how many values show that there are no others.
_COARSE = (jnp.bfloat16, np.float16, np.float32)
_SOME = 5


def density_rounding(
    key: PRNGKeyArray, target: AbstractTarget, guide: AbstractGuide
) -> float | None:
    """Standard deviation of the rounding errors of a log density, in nats.

    A smooth log density is a parabola on a short line between two draws; what is left
    after a parabola is taken away is rounding. No second evaluation in double precision
    is needed, so densities behind callbacks can be measured too. At least what the
    spacing of floating-point numbers at the log densities and at the parameters comes
    to is returned.

    Args:
        key: Random key.
        target: The posterior.
        guide: Where to look; anywhere near the posterior.

    Returns:
        The size of the errors, or None where it cannot be measured: discrete or
        amortised latents, or no finite log density.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> from softcvi.diagnostics import density_rounding
        >>> like = jnp.zeros(2, jnp.float32)
        >>> exact = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), like)
        >>> guide = softcvi.guides.mean_field(exact)
        >>> density_rounding(jax.random.key(0), exact, guide) < 1e-5
        True
        >>> shifted = softcvi.DensityTarget(
        ...     lambda x: jnp.float32(1e9) - 0.5 * jnp.sum(x**2).astype("float32"), like
        ... )
        >>> density_rounding(jax.random.key(0), shifted, guide) > 10
        True
    """
    if target.amortised or not target.structure.is_continuous:
        return None
    return rounding_at(key, target, _drawn(key, target, guide))


def rounding_at(
    key: PRNGKeyArray, target: AbstractTarget, draws: Float[ArrayLike, "n d"]
) -> float | None:
    """The same from given draws.

    Args:
        key: Random key.
        target: The posterior.
        draws: Draws near the posterior, as vectors in the fitting space.
    """
    draws = np.asarray(draws)
    pick = numpy_generator(key).choice(len(draws), (2, LINES))
    dtype = jnp.result_type(*target.structure.dtypes)
    ends = (as_array(draws[index], dtype) for index in pick)
    values, moved = map(np.asarray, log_densities_on_lines(target, *ends))
    spacing = _spacing(values)
    values, moved = values.astype(np.float64), moved.astype(np.float64)
    known = np.all(np.isfinite(values), axis=-1)
    if not np.any(known):
        return None
    powers = np.vander(np.linspace(-1.0, 1.0, _POINTS), _PARABOLA + 1)
    # Sums over the points of a line at large log densities lose digits themselves.
    values = np.where(known[..., None], values, 0.0)  # no infinity minus infinity
    lines = values - values[..., :1]
    fitted = lines @ np.linalg.pinv(powers).T @ powers.T
    freedom = _POINTS - _PARABOLA - 1
    left = np.sqrt(np.sum((lines - fitted) ** 2, axis=-1) / freedom)
    roughness = [
        float(np.median(of_length[is_known]))
        for of_length, is_known in zip(left, known, strict=True)
        if np.any(is_known)
    ]
    # Rounding to a grid has a standard deviation of its spacing over the root of 12.
    floor = float(np.median(spacing[known]) / np.sqrt(12.0))
    # Parameters are rounded too: what one unit in their last place changes.
    known = np.all(np.isfinite(moved), axis=0)
    steps = np.abs(moved[1][known] - moved[0][known]) / np.sqrt(12.0)
    return max(min(roughness), floor, float(np.median(steps)) if known.any() else 0.0)


def _spacing(values: np.ndarray) -> np.ndarray:
    """Distances to the next number that a log density could have been.

    A model may compute in fewer digits than it returns. On short lines it is constant
    then, which says nothing; but all its values are numbers of the coarser kind.
    """
    finite = np.unique(values[np.isfinite(values)])
    for dtype in map(np.dtype, _COARSE):
        if dtype.itemsize >= values.dtype.itemsize or finite.size < _SOME:
            continue
        with np.errstate(over="ignore"):
            if np.array_equal(finite.astype(dtype).astype(values.dtype), finite):
                eps = float(jnp.finfo(dtype).eps)
                return eps * np.abs(values.astype(np.float64))
    with np.errstate(invalid="ignore"):  # of infinity, which counts nowhere
        return np.asarray(np.spacing(np.abs(values)), np.float64)


@functools.partial(rarely_run, effort=0)
def _drawn(
    key: PRNGKeyArray, target: AbstractTarget, guide: AbstractGuide
) -> Float[Array, "n d"]:
    guide = paramax.unwrap(guide)
    keys = jax.random.split(key, 2 * LINES)
    return jax.vmap(lambda k: target.structure.ravel(guide.sample(k)))(keys)


@functools.partial(rarely_run, effort=0)
def log_densities_on_lines(
    target: AbstractTarget, ones: Float[Array, "m d"], others: Float[Array, "m d"]
) -> tuple[Float[Array, "lengths lines points"], Float[Array, "2 lines"]]:
    """Log densities on lines between draws, and at draws and their neighbours."""
    grid = jnp.linspace(-0.5, 0.5, _POINTS, dtype=ones.dtype)
    lengths = jnp.asarray(LENGTHS, ones.dtype)

    shares = (lengths[:, None] * grid)[:, None, :, None]
    x = ones[:, None] + shares * (others - ones)[:, None]

    def at(x):
        return target.log_density(target.structure.unravel(x))

    # In one batch, which a sum over rows takes as one product of matrices.
    points = [x.reshape(-1, x.shape[-1]), ones, jnp.nextafter(ones, jnp.inf)]
    values = jax.vmap(at)(jnp.concatenate(points))
    on_lines, moved = jnp.split(values, [x.size // x.shape[-1]])
    return on_lines.reshape(x.shape[:-1]), moved.reshape(2, -1)
