"""A guide for hierarchies: global parameters, then each group given these."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar

from softcvi.guides._base import AbstractGuide, num_noise
from softcvi.guides._gaussian import HALF_LOG_TWO_PI, full_rank
from softcvi.guides._parameters import as_guide_structure, refuse_condition
from softcvi.targets import Structure
from softcvi.targets._plate import check_plate


class HierarchicalGuide(AbstractGuide):
    """Any guide for the global sites, and a normal per group given their values.

    The mean and the log scales of a group's normal are affine in the global values,
    so that groups can follow the population: a funnel is a matter of one slope. Its
    scalars may be correlated within the group. Groups are independent given the
    global values.

    Args:
        shared: Guide of the dict of global sites.
        like: One particle, a dict with the local sites too.
        local: Names of the local sites, with the groups as first axis.
        scale: Starting standard deviation of the local sites.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> like = {"mu": jnp.zeros(()), "theta": jnp.zeros((5, 2))}
        >>> guide = softcvi.guides.hierarchical(like, local=("theta",))
        >>> guide.sample(jax.random.key(0))["theta"].shape
        (5, 2)
    """

    shared: AbstractGuide
    loc: Float[Array, "groups l"]
    loc_slope: Float[Array, "groups l p"]
    log_scale: Float[Array, "groups l"]
    log_scale_slope: Float[Array, "groups l p"]
    lower: Float[Array, "groups l l"]
    local_sites: tuple[str, ...] = eqx.field(static=True)
    structure: Structure = eqx.field(static=True)

    def __init__(
        self,
        shared: AbstractGuide,
        like: PyTree | Structure,
        local: tuple[str, ...],
        *,
        scale: float = 1.0,
    ):
        self.structure = as_guide_structure(like)
        groups = check_plate(self.structure, tuple(local))
        sizes = dict(zip(self.structure.names, self.structure.sizes, strict=True))
        count = sum(sizes[name] for name in local) // groups
        self.shared = shared
        self.local_sites = tuple(n for n in self.structure.names if n in local)
        size = shared.structure.size
        self.loc = jnp.zeros((groups, count))
        self.loc_slope = jnp.zeros((groups, count, size))
        self.log_scale = jnp.full((groups, count), jnp.log(scale))
        self.log_scale_slope = jnp.zeros((groups, count, size))
        self.lower = jnp.zeros((groups, count, count))

    def _sample(self, key: PRNGKeyArray, condition: PyTree = None) -> PyTree:
        refuse_condition(self, condition)
        shared_key, local_key = jax.random.split(key)
        noise = jax.random.normal(local_key, self.loc.shape, self.loc.dtype)
        return self._joined(self.shared._sample(shared_key), noise)

    def _log_prob(self, particle: PyTree, condition: PyTree = None) -> Scalar:
        refuse_condition(self, condition)
        shared, local = self._log_prob_terms(particle)
        return shared + jnp.sum(local)

    def _log_prob_terms(
        self, particle: PyTree
    ) -> tuple[Scalar, Float[Array, " groups"]]:
        shared = {name: particle[name] for name in self.shared.structure.like}
        loc, scale = self._moments(shared)
        groups = self.loc.shape[0]
        parts = [jnp.reshape(particle[n], (groups, -1)) for n in self.local_sites]
        z = (jnp.concatenate(parts, axis=1) - loc) / scale
        # Unit lower triangular: what a scalar shares with the earlier ones of a group.
        z = z + jnp.einsum("gij,gj->gi", jnp.tril(self.lower, -1), z)
        terms = -0.5 * z**2 - jnp.log(scale) - HALF_LOG_TWO_PI
        return self.shared._log_prob(shared), jnp.sum(terms, axis=1)

    def log_prob_terms(
        self, particle: PyTree
    ) -> tuple[Scalar, Float[Array, " groups"]]:
        """Log density of the global sites, and of each group given them."""
        return paramax.unwrap(self)._log_prob_terms(particle)

    def _moments(self, shared: PyTree) -> tuple[Array, Array]:
        vector = self.shared.structure.ravel(shared)
        loc = self.loc + self.loc_slope @ vector
        return loc, jnp.exp(self.log_scale + self.log_scale_slope @ vector)

    def _joined(self, shared: PyTree, noise: Float[Array, "groups l"]) -> PyTree:
        """A particle from global values and standard normal numbers of the groups."""
        loc, scale = self._moments(shared)
        eye = jnp.eye(noise.shape[1], dtype=noise.dtype)
        factor = eye + jnp.tril(self.lower, -1)
        z = jax.vmap(lambda f, n: jax.scipy.linalg.solve_triangular(f, n, lower=True))(
            factor, noise
        )
        return self._with_local(shared, loc + scale * z)

    def _with_local(self, shared: PyTree, local: Float[Array, "groups l"]) -> PyTree:
        like = self.structure.like
        values, start = dict(shared), 0
        for name in self.local_sites:
            stop = start + int(np.prod(like[name].shape[1:], dtype=int))
            values[name] = local[:, start:stop].reshape(like[name].shape)
            start = stop
        return values

    @property
    def covers_reals(self) -> bool:
        return self.shared.covers_reals

    @property
    def has_noise(self) -> bool:
        return self.shared.has_noise

    @property
    def num_shared_noise(self) -> int:
        """How many numbers of the noise belong to the global sites."""
        return num_noise(self.shared)

    def _sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        shared_key, local_key = jax.random.split(key)
        local = jax.random.normal(local_key, (self.loc.size,), self.loc.dtype)
        return jnp.concatenate([self.shared._sample_noise(shared_key), local])

    def _from_noise(
        self, noise: Float[Array, " noise"], condition: PyTree = None
    ) -> PyTree:
        refuse_condition(self, condition)
        shared, local = jnp.split(noise, [self.num_shared_noise])
        return self._joined(
            self.shared._from_noise(shared), local.reshape(self.loc.shape)
        )

    def noise_owner(self) -> np.ndarray:
        names, sizes = self.structure.names, self.structure.sizes
        start = dict(zip(names, np.cumsum([0, *sizes])[:-1], strict=True))
        size = dict(zip(names, sizes, strict=True))
        groups = self.loc.shape[0]
        position = np.concatenate(
            [start[n] + np.arange(size[n]) for n in self.shared.structure.names]
        )
        owner = self.shared.noise_owner()
        local = [
            (start[n] + np.arange(size[n])).reshape(groups, -1)
            for n in self.local_sites
        ]
        return np.concatenate(
            [
                np.where(owner < 0, -1, position[owner]),
                np.concatenate(local, axis=1).reshape(-1),
            ]
        )


def hierarchical(
    target: PyTree, *, local: tuple[str, ...], scale: float = 1.0
) -> HierarchicalGuide:
    """A full-rank normal for the global sites, and a normal per group given these.

    Args:
        target: The target, or a pytree like one particle: a dict.
        local: Names of the local sites, with the groups as first axis.
        scale: Starting standard deviation.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> like = {"mu": jnp.zeros(()), "theta": jnp.zeros(5)}
        >>> softcvi.guides.hierarchical(like, local=("theta",)).local_sites
        ('theta',)
    """
    structure = as_guide_structure(target)
    check_plate(structure, tuple(local))
    shared = {n: leaf for n, leaf in structure.like.items() if n not in local}
    return HierarchicalGuide(
        full_rank(shared, scale=scale), structure, tuple(local), scale=scale
    )
