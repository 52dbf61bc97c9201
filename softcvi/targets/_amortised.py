"""Targets with mini-batches: one posterior per datum, or one for all data."""

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray, PyTree, Scalar

from softcvi.targets._base import AbstractTarget, as_log_density
from softcvi.targets._space import AbstractSpace, ModelSpace
from softcvi.targets._structure import Structure, as_structure


class AmortisedTarget(AbstractTarget):
    """One posterior per datum: each step draws data, labels compete within a datum.

    Sound with mini-batches of any size, because the labels of one datum's particles
    never meet those of another. The guide is conditioned on the datum.

    Args:
        log_prob: Function ``(particle, datum) -> scalar``. If it is a callable
            pytree, its arrays are model parameters (see ``WithModelTerm``).
        like: One particle (the latents of *one* datum).
        data: Pytree of arrays with a leading data axis.
        batch_size: Number of data per step.
        space: Where the fit happens.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> target = softcvi.targets.AmortisedTarget(
        ...     lambda z, x: -0.5 * jnp.sum(z**2) - 0.5 * jnp.sum((x - z) ** 2),
        ...     like=jnp.zeros(1), data=jnp.zeros((100, 1)), batch_size=4,
        ... )
        >>> import jax
        >>> target.draw_data(jax.random.key(0)).shape
        (4, 1)
    """

    amortised: ClassVar[bool] = True

    log_prob: Callable
    structure: Structure = eqx.field(static=True)
    space: AbstractSpace
    data: PyTree
    batch_size: int = eqx.field(static=True)
    has_gradient: bool = eqx.field(static=True)

    def __init__(
        self,
        log_prob: Callable,
        like: PyTree,
        *,
        data: PyTree,
        batch_size: int = 1,
        space: AbstractSpace | None = None,
    ):
        self.log_prob = log_prob
        self.structure = as_structure(like)
        self.space = ModelSpace() if space is None else space
        self.data = data
        self.batch_size = checked_batch_size(batch_size, data)
        self.has_gradient = self.structure.is_continuous

    def log_density(self, particle: PyTree, data: Any = None) -> Scalar:
        x, log_det = self.space.to_model_and_log_det(particle)
        return as_log_density(self.log_prob(x, data)) + log_det

    def draw_data(self, key: PRNGKeyArray) -> PyTree:
        return draw_rows(key, self.data, self.batch_size)

    def trainable(self) -> PyTree:
        frozen = jax.tree_util.tree_map(lambda _: False, self)
        model = jax.tree_util.tree_map(eqx.is_inexact_array, self.log_prob)
        return eqx.tree_at(lambda t: t.log_prob, frozen, model)


class MiniBatchTarget(AbstractTarget):
    """A *global* latent whose likelihood is summed over a mini-batch each step.

    Labels are a nonlinear function of the log density, so subsampling the data of a
    global latent biases SoftCVI towards posteriors that are too wide (1.3 times with
    half batches, 2.5 to 3 times with a tenth). The ELBO has no such bias: use
    ``objective=softcvi.ELBO()`` with this target, or ``ControlVariateTarget``, which
    has no bias to speak of with either.

    Args:
        log_prior: Function of one particle in model coordinates.
        log_likelihood: Function ``(particle, batch) -> scalar``, the log likelihood
            of a batch of rows.
        like: One particle.
        data: Pytree of arrays with a leading data axis.
        batch_size: Rows per step; the likelihood is scaled up accordingly.
        space: Where the fit happens.

    Example:
        >>> import warnings, jax.numpy as jnp, softcvi
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     target = softcvi.targets.MiniBatchTarget(
        ...         lambda t: -0.5 * t**2,
        ...         lambda t, x: -0.5 * jnp.sum((x - t) ** 2),
        ...         like=jnp.zeros(()), data=jnp.ones(10), batch_size=5,
        ...     )
        >>> float(target.log_density(jnp.zeros(()), jnp.ones(5)))
        -5.0
    """

    log_prior: Callable
    log_likelihood: Callable
    structure: Structure = eqx.field(static=True)
    space: AbstractSpace
    data: PyTree
    batch_size: int = eqx.field(static=True)
    has_gradient: bool = eqx.field(static=True)

    def __init__(
        self,
        log_prior: Callable,
        log_likelihood: Callable,
        like: PyTree,
        *,
        data: PyTree,
        batch_size: int,
        space: AbstractSpace | None = None,
    ):
        self.log_prior = log_prior
        self.log_likelihood = log_likelihood
        self.structure = as_structure(like)
        self.space = ModelSpace() if space is None else space
        self.data = data
        self.batch_size = checked_batch_size(batch_size, data)
        self.has_gradient = self.structure.is_continuous
        if self.batch_size < num_rows(data):
            warnings.warn(
                "MiniBatchTarget subsamples the data of a global latent: SoftCVI and "
                "SNIS-fKL posteriors come out too wide. Use "
                "objective=softcvi.ELBO(), or all the data.",
                stacklevel=2,
            )

    def log_density(self, particle: PyTree, data: Any = None) -> Scalar:
        x, log_det = self.space.to_model_and_log_det(particle)
        batch = self.data if data is None else data
        scale = num_rows(self.data) / num_rows(batch)
        prior = as_log_density(self.log_prior(x), "log_prior")
        likelihood = as_log_density(self.log_likelihood(x, batch), "log_likelihood")
        return prior + scale * likelihood + log_det

    def draw_data(self, key: PRNGKeyArray) -> PyTree:
        return draw_rows(key, self.data, self.batch_size)


def num_rows(data: PyTree) -> int:
    """Length of the first axis."""
    return jax.tree_util.tree_leaves(data)[0].shape[0]


def checked_batch_size(batch_size: int, data: PyTree) -> int:
    """A number of rows that the data have, or an error."""
    rows = {leaf.shape[0] for leaf in jax.tree_util.tree_leaves(data)}
    if len(rows) != 1:
        raise ValueError(
            f"data: all arrays need one leading axis of equal length; got {rows}."
        )
    if not 1 <= batch_size <= min(rows):
        raise ValueError(
            f"batch_size: must lie between 1 and the {min(rows)} rows of data; got "
            f"{batch_size}."
        )
    return int(batch_size)


def draw_rows(key: PRNGKeyArray, data: PyTree, batch_size: int) -> PyTree:
    """Rows at random, with replacement; all of them where that many are asked for."""
    if batch_size == num_rows(data):
        return data  # all of them, each once
    index = jax.random.randint(key, (batch_size,), 0, num_rows(data))
    return jax.tree_util.tree_map(lambda leaf: leaf[index], data)
