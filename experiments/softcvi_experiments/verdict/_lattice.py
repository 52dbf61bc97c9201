"""Answers where few parameters are on a lattice and the others exact given those."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from softcvi.targets import AbstractSpace
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)

# Log marginal density of each point, means of the other parameters, their variances.
Given = tuple[np.ndarray, np.ndarray, np.ndarray]
_BATCH = 20_000
_PASSES = 3
_DEEP = 22.0


def lattice_moments(
    conditional: Callable[[np.ndarray], Given],
    low: np.ndarray,
    high: np.ndarray,
    points: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of the parameters of a lattice, then of the others.

    Args:
        conditional: Function of points along the first axis; returns the log marginal
            density of each, and the means and variances of the others given it.
        low: Lower corner of the first lattice, which is refined.
        high: Upper corner.
        points: Points per axis.

    Example:
        >>> def normal(x):
        ...     return -0.5 * (x**2).sum(axis=1), x[:, :1], np.ones((len(x), 1))
        >>> box = np.full(3, -9.0), np.full(3, 9.0)
        >>> lattice_moments(normal, *box, points=41)[1].round(3)
        array([1., 1., 1., 2.])
    """
    low, high = np.array(low, float), np.array(high, float)
    size = low.size
    for _ in range(_PASSES):
        axes = [np.linspace(a, b, points) for a, b in zip(low, high, strict=True)]
        mesh = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, size)
        batches = np.split(mesh, range(_BATCH, len(mesh), _BATCH))
        found = [conditional(batch) for batch in batches]
        height, means, variances = (
            np.concatenate(parts) for parts in zip(*found, strict=True)
        )
        height = np.where(np.isnan(height), -np.inf, height)
        cube = height.reshape((points,) * size)
        for axis in range(size):
            others = tuple(other for other in range(size) if other != axis)
            inside = np.flatnonzero(cube.max(axis=others) > height.max() - _DEEP)
            step = axes[axis][1] - axes[axis][0]
            low[axis] = max(low[axis], axes[axis][inside[0]] - step)
            high[axis] = min(high[axis], axes[axis][inside[-1]] + step)
    weights = special.softmax(height)
    means = np.concatenate([mesh, means], axis=1)
    variances = np.concatenate([np.zeros_like(mesh), variances], axis=1)
    mean = weights @ means
    return mean, weights @ (variances + (means - mean) ** 2)


def linear_given(design: np.ndarray, y: np.ndarray, sd, prior_mean, prior_sd) -> Given:
    """A linear model with known noise at each point of a lattice.

    Args:
        design: Matrices of shape (points, rows, parameters).
        y: What was seen.
        sd: Of the noise, one number or one for each point.
        prior_mean: Of the parameters.
        prior_sd: Of the parameters, which are independent before.

    Example:
        >>> design, y = np.ones((1, 4, 1)), np.full(4, 5.0)
        >>> _, mean, variance = linear_given(design, y, 1.0, 0.0, 1.0)
        >>> mean.round(3).tolist(), variance.tolist()
        ([[4.0]], [[0.2]])
    """
    count, rows, size = design.shape
    sd = np.broadcast_to(sd, count)
    prior_mean, prior_sd = (
        np.broadcast_to(value, size).astype(float) for value in (prior_mean, prior_sd)
    )
    # In units of the prior, for numbers of similar size.
    design = design * prior_sd / sd[:, None, None]
    y = (y - 0 * sd[:, None]) / sd[:, None] - design @ (prior_mean / prior_sd)
    precision = np.swapaxes(design, 1, 2) @ design + np.eye(size)
    shift = np.einsum("nrk,nr->nk", design, y)
    covariance = np.linalg.inv(precision)
    mean = np.einsum("nij,nj->ni", covariance, shift)
    height = 0.5 * (np.sum(shift * mean, axis=1) - np.sum(y**2, axis=1))
    height -= 0.5 * np.linalg.slogdet(precision)[1] + rows * np.log(sd)
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    return height, prior_mean + prior_sd * mean, prior_sd**2 * variance


def nested(
    log_prob: Callable,
    outer: Mapping[str, tuple[Any, Any]],
    inner: Mapping[str, tuple[int, ...]],
    data: Mapping[str, Any],
    conditional: Callable[[np.ndarray], Given],
    points: int = 121,
    space: AbstractSpace | None = None,
) -> RandomPosterior:
    """A posterior with some sites on a lattice and the others exact given them.

    Args:
        log_prob: Module-level function of the sites and of the data.
        outer: Name of each site on the lattice, and its corners.
        inner: Name and shape of each other site, in the order of ``conditional``.
        data: Arrays by name.
        conditional: As for ``lattice_moments``.
        points: Points per axis.
        space: Where the fit happens.

    Example:
        >>> def log_prob(theta, data):
        ...     return -0.5 * (theta["a"] ** 2 + (theta["b"] - theta["a"]) ** 2)
        >>> def normal(x):
        ...     return -0.5 * x[:, 0] ** 2, x, np.ones_like(x)
        >>> case = nested(log_prob, {"a": (-9, 9)}, {"b": ()}, {}, normal)
        >>> round(float(case.spread["b"]) ** 2, 3)
        2.0
    """
    low, high = (
        np.concatenate([np.ravel(corners[side]) for corners in outer.values()])
        for side in (0, 1)
    )
    found = lattice_moments(conditional, low, high, points)
    shapes = {name: np.shape(corners[0]) for name, corners in outer.items()}
    shapes.update(inner)
    mean, variance = (split(values, shapes) for values in found)
    target = density(log_prob, shapes, data, space)
    return from_moments(target, mean, variance, "quadrature")


def split(values: np.ndarray, shapes: Mapping[str, tuple[int, ...]]) -> dict:
    """A vector as sites, along the last axis.

    Example:
        >>> split(np.arange(3.0), {"a": (), "b": (2,)})["b"]
        array([1., 2.])
    """
    sites, begin = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        part = values[..., begin : begin + size]
        sites[name] = part.reshape(values.shape[:-1] + shape)
        begin += size
    return sites


def latticed(
    log_prob: Callable,
    box: Mapping[str, tuple[Any, Any]],
    data: Mapping[str, Any],
    points: int = 301,
    space: AbstractSpace | None = None,
) -> RandomPosterior:
    """A posterior of one to three parameters, all of them on a lattice.

    Args:
        log_prob: Module-level function of the sites and of the data.
        box: Name of each site, and its corners.
        data: Arrays by name.
        points: Points per axis.
        space: Where the fit happens.

    Example:
        >>> def log_prob(theta, data):
        ...     return -0.5 * (theta["a"] / data["sd"]) ** 2
        >>> case = latticed(log_prob, {"a": (-30.0, 30.0)}, {"sd": 2.0})
        >>> round(float(case.spread["a"]), 3)
        2.0
    """
    shapes = {name: np.shape(corners[0]) for name, corners in box.items()}
    heights = in_double(log_prob, shapes, data)

    def conditional(x: np.ndarray) -> Given:
        none = np.zeros((len(x), 0))
        return heights(x), none, none

    return nested(log_prob, box, {}, data, conditional, points, space)


def in_double(
    log_prob: Callable, shapes: Mapping[str, tuple[int, ...]], data: Mapping[str, Any]
) -> Callable[[np.ndarray], np.ndarray]:
    """A log density as a function of NumPy vectors, in double precision.

    Args:
        log_prob: Function of the sites and of the data.
        shapes: Shape of each site.
        data: Arrays by name.

    Example:
        >>> heights = in_double(lambda t, d: -t["x"].sum(), {"x": (2,)}, {})
        >>> heights(np.ones((3, 2)))
        array([-2., -2., -2.])
    """
    compiled = jax.jit(
        jax.vmap(
            lambda x, observed: log_prob(split(x, shapes), observed), in_axes=(0, None)
        )
    )

    def heights(x: np.ndarray) -> np.ndarray:
        rows = -len(x) % _BATCH if len(x) > _BATCH else 0
        padded = np.concatenate([x, np.repeat(x[:1], rows, axis=0)])
        with jax.enable_x64(True):
            observed = {name: jnp.asarray(value, float) for name, value in data.items()}
            parts = np.split(padded, range(_BATCH, len(padded), _BATCH))
            found = [np.asarray(compiled(jnp.asarray(p), observed)) for p in parts]
        return np.concatenate(found)[: len(x)]

    return heights
