"""The fitted posterior: what the user keeps."""

import functools
import itertools
import os
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jax.typing import ArrayLike
from jaxtyping import Array, Int, PRNGKeyArray, PyTree, Shaped

from softcvi._compile import by_effort, fused, host_array, put, rarely_run
from softcvi.guides import AbstractGuide
from softcvi.posterior import _storage
from softcvi.posterior._errors import without_errors
from softcvi.posterior._importance import (
    ImportanceSample,
    log_mean_weight,
    psis,
    resample_index,
)
from softcvi.targets import AbstractSpace, AbstractTarget, Structure
from softcvi.targets._cost import effort_of
from softcvi.targets._numpy_random import numpy_generator

# Draws that are weighed at a time by a density that takes few at once; the numbers of
# draws that fits and verdicts ask for are multiples of it.
_PIECE = 250


class Posterior:
    """A fitted guide with the map to the model's own coordinates.

    Args:
        guide: The fitted guide.
        target: The target it was fitted to; None for one loaded without its model.
        space: Needed only if there is no target.
        particle_batch: Draws are made and evaluated in pieces of this size, which
            bounds the memory.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(
        ...     lambda t: -0.5 * jnp.sum(t["x"] ** 2), {"x": jnp.zeros(2)}
        ... )
        >>> posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
        >>> posterior.sample(jax.random.key(0), 100)["x"].shape
        (100, 2)
    """

    def __init__(
        self,
        guide: AbstractGuide,
        target: AbstractTarget | None = None,
        *,
        space: AbstractSpace | None = None,
        particle_batch: int = 4_000,
    ):
        if not isinstance(guide, AbstractGuide):
            raise TypeError(
                "guide: expected a guide of softcvi.guides; got "
                f"{type(guide).__name__}."
            )
        space = space if target is None else target.space
        if space is None:
            raise ValueError("target: give the target, or at least its space.")
        self.guide = guide
        self.target = target
        self.space = space
        self.particle_batch = particle_batch

    def __repr__(self) -> str:
        return f"Posterior({self.guide.structure})"

    def sample(
        self, key: PRNGKeyArray, n: int = 1000, *, condition: PyTree = None
    ) -> dict[str, Array]:
        """Draw n times; named arrays in model coordinates.

        Args:
            key: Random key.
            n: Number of draws.
            condition: The datum, for an amortised guide.
        """
        if n < 1:
            raise ValueError(f"n: at least one draw; got {n}.")
        pieces = (
            _draw(self.guide, self.space, self.target, key, piece, condition)
            for piece in self._pieces(np.arange(n))
        )
        return _join(pieces, n)

    def log_prob(self, draws: PyTree, *, condition: PyTree = None) -> Array:
        """Log density of the guide at draws, in model coordinates.

        Args:
            draws: Named arrays (or a pytree as the target's) with a leading axis;
                extra names, such as derived quantities, are ignored.
            condition: The datum, for an amortised guide.
        """
        values = self._as_particles(draws)
        pieces = [
            _log_prob(self.guide, self.space, piece, condition)
            for piece in self._pieces(values)
        ]
        return jnp.concatenate(pieces)

    def importance(
        self,
        key: PRNGKeyArray,
        n: int = 4000,
        *,
        begun: ImportanceSample | None = None,
    ) -> ImportanceSample:
        """Draws with log densities, Pareto smoothed weights and k-hat.

        Args:
            key: Random key.
            n: Number of draws.
            begun: The first draws, made before with the same key: only what is missing
                is drawn and evaluated.
        """
        target = self._needs_target("importance weights")
        first = 0 if begun is None else len(begun.log_q)
        pieces = self._weighed(target, key, np.arange(first, n))
        if begun is not None:
            parts = (begun.draws, begun.particles, begun.log_p, begun.log_q)
            pieces = itertools.chain([parts], pieces)
        draws, particles, log_p, log_q = _join(pieces, n)
        log_p, log_q = np.asarray(log_p, np.float64), np.asarray(log_q, np.float64)
        log_p = without_errors(numpy_generator(key), target, particles, log_p, log_q)
        log_weights, khat = psis(log_p - log_q)
        evidence = log_mean_weight(log_p - log_q) + target.log_offset
        return ImportanceSample(
            draws, log_p, log_q, log_weights, khat, evidence, particles
        )

    def resample(
        self, key: PRNGKeyArray, n: int = 1000, *, proposals: int | None = None
    ) -> dict[str, Array]:
        """Importance-corrected draws: those of the guide, resampled by weight.

        Args:
            key: Random key.
            n: Number of draws to return.
            proposals: Draws of the guide to choose from, four times n by default.
        """
        sample = self.importance(key, 4 * n if proposals is None else proposals)
        rng = numpy_generator(key)
        index = resample_index(rng, sample.log_weights, n)
        # NumPy's indexing is not compiled anew for each shape.
        return jax.tree_util.tree_map(
            lambda leaf: jnp.asarray(np.asarray(leaf)[index]), sample.draws
        )

    def log_evidence(self, key: PRNGKeyArray, n: int = 4000) -> float:
        """Importance-weighted estimate of the log marginal likelihood."""
        return self.importance(key, n).log_evidence

    def to_arviz(self, key: PRNGKeyArray | None = None, n: int = 1000, **kwargs):
        """An ArviZ DataTree; see ``softcvi.adapters.to_arviz``."""
        # The one call up the layers: users look for it here, ArviZ is optional.
        from softcvi.adapters import to_arviz

        return to_arviz(self, key=key, n=n, **kwargs)

    def save(self, path: str | os.PathLike, **facts: Any) -> None:
        """Write the guide and its space to one file; see ``softcvi.load``.

        Args:
            path: Where to write; an existing file is replaced only on success.
            **facts: JSON values kept beside it, such as a seed or a remark.
        """
        parts = {"guide": self.guide, "space": self.space.stored()}
        _storage.write(path, parts, facts)

    def _needs_target(self, what: str) -> AbstractTarget:
        if self.target is None:
            raise ValueError(
                f"target: {what} need the model's log density; load the posterior with "
                "softcvi.load(path, target=target)."
            )
        return self.target

    def _pieces(self, values: PyTree):
        n = jax.tree_util.tree_leaves(values)[0].shape[0]
        for start in range(0, n, self.particle_batch):
            stop = min(n, start + self.particle_batch)
            yield jax.tree_util.tree_map(
                lambda leaf, a=start, b=stop: leaf[a:b], values
            )

    def _weighed(
        self, target: AbstractTarget, key: PRNGKeyArray, numbers: np.ndarray
    ) -> Iterator:
        """Numbered draws with their weights, in pieces."""
        weigh = _weigh_by_effort[effort_of(target)]
        at_once = target.particles_at_once
        if at_once is None:
            pieces = self._pieces(numbers)
            yield from (weigh(self.guide, target, key, piece) for piece in pieces)
            return
        # Of one size, so that samples of any size share a program.
        size = min(self.particle_batch, at_once, _PIECE)
        for start in range(0, len(numbers), size):
            some = numbers[start : start + size]
            piece = weigh(self.guide, target, key, np.resize(some, size))
            first = functools.partial(_first, count=len(some))
            yield jax.tree_util.tree_map(first, piece)

    def _as_particles(self, draws: PyTree) -> PyTree:
        names = self.guide.structure.names
        is_bare = not isinstance(self.guide.structure.like, dict)
        if is_bare and isinstance(draws, dict):
            leaves = [jnp.asarray(draws[name]) for name in names]
            return jax.tree_util.tree_unflatten(self.guide.structure.treedef, leaves)
        return jax.tree_util.tree_map(jnp.asarray, draws)


def _first(leaf: Array, count: int) -> Array:
    return leaf if len(leaf) == count else put(np.asarray(leaf)[:count])


def _keys(key: PRNGKeyArray, piece: Int[ArrayLike, " m"]) -> Shaped[Array, "m *key"]:
    """The keys of numbered draws, made inside the program that needs them."""
    key = fused(key)
    return jax.vmap(lambda i: jax.random.fold_in(key, i))(piece)


@rarely_run
def _draw(guide, space, target, key, piece, condition):
    guide = paramax.unwrap(guide)

    def one(key):
        x = space.to_model(guide.sample(key, condition))
        return _described(target, guide, x)

    return jax.vmap(one)(_keys(key, piece))


@rarely_run
def _log_prob(guide, space, values, condition):
    guide = paramax.unwrap(guide)

    def one(x):
        u, log_det = space.from_model_and_log_det(x)
        if isinstance(u, dict):
            u = {name: u[name] for name in guide.structure.like}
        return guide.log_prob(u, condition) + log_det

    return jax.vmap(one)(values)


def _weigh(guide, target, key, piece):
    guide = paramax.unwrap(guide)

    def one(key):
        u, log_q = guide.sample_and_log_prob(key)
        x, log_det = target.space.to_model_and_log_det(u)
        draw = _described(target, guide, x)
        return draw, u, target.log_density(u) - log_det, log_q - log_det

    return jax.vmap(one)(_keys(key, piece))


_weigh_by_effort = by_effort(_weigh)


def _described(target, guide, x):
    if target is not None:
        return target.describe(x)
    if isinstance(x, dict):
        return x
    leaves = jax.tree_util.tree_leaves(x)
    return dict(zip(guide.structure.names, leaves, strict=True))


def _join(pieces: Iterator, n: int) -> Any:
    """Pieces as one, each written to its place and dropped before the next is made."""
    first = next(pieces)
    leaves, treedef = jax.tree_util.tree_flatten(first)
    if len(leaves[0]) == n:
        return first
    if isinstance(leaves[0], jax.core.Tracer):  # no place to write to while tracing
        return jax.tree_util.tree_map(
            lambda *parts: jnp.concatenate(parts), first, *pieces
        )
    whole = [host_array((n, *leaf.shape[1:]), leaf.dtype) for leaf in leaves]
    begin = 0
    for piece in itertools.chain([first], pieces):
        leaves = jax.tree_util.tree_leaves(piece)
        end = begin + len(leaves[0])
        for out, leaf in zip(whole, leaves, strict=True):
            out[begin:end] = leaf
        begin = end
    # Not ``jnp.asarray``, which copies in newer versions of JAX.
    return jax.tree_util.tree_unflatten(treedef, jax.device_put(whole))


def load(path: str | os.PathLike, target: AbstractTarget | None = None) -> Posterior:
    """Read a posterior that ``Posterior.save`` wrote.

    Args:
        path: The file.
        target: The model, needed for importance weights, and where the coordinates of
            the fit are defined by the model (non-centred ones); other draws and log
            densities work without it.

    Example:
        >>> import jax, jax.numpy as jnp, os, softcvi, tempfile
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "fit.softcvi")
        ...     posterior.save(path)
        ...     again = softcvi.load(path)
        >>> again.sample(jax.random.key(0), 5)["value"].shape
        (5, 2)
    """
    parts, _ = _storage.read(path)
    guide, space = parts.get("guide"), parts.get("space")
    if not isinstance(guide, AbstractGuide) or not isinstance(space, AbstractSpace):
        raise ValueError(
            f"{path}: holds no posterior: a guide and its space are missing. Give a "
            "file that posterior.save(path) wrote."
        )
    check_usable(guide, path)
    if target is None and space.needs_model:
        raise ValueError(
            f"target: the posterior in {path} was fitted in coordinates that its model "
            "defines; load it with softcvi.load(path, target=target)."
        )
    if target is not None:
        difference = target.structure.difference(guide.structure)
        if difference:
            raise ValueError(
                f"target: does not fit the posterior in {path}: {difference}."
            )
        target = target.in_space(space)
    return Posterior(guide, target, space=space)


def check_usable(guide: AbstractGuide, path: str | os.PathLike) -> None:
    """Refuse a guide that cannot be drawn from, by its shapes alone.

    Args:
        guide: The guide, from a file.
        path: The file.
    """
    try:
        if guide.is_conditional:
            return  # what it is conditioned on is not in the file
        draw = eqx.filter_eval_shape(guide.sample, jax.random.key(0))
        difference = guide.structure.difference(Structure(draw))
    except Exception as error:
        difference = str(error).partition("\n")[0] or type(error).__name__
    if difference:
        raise ValueError(
            f"{path}: its guide cannot be drawn from ({difference:.300}). Save it "
            "again with posterior.save(path)."
        )
