"""SiteGuide: named sites joined into one guide, each conditioned on earlier ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from flowjax.distributions import AbstractDistribution
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar

from softcvi.guides._base import AbstractGuide
from softcvi.guides._parameters import refuse_condition
from softcvi.guides._vector import (
    AbstractVectorDistribution,
    as_vector_distribution,
    num_noise,
)
from softcvi.targets import Structure


class NetworkDistribution(AbstractVectorDistribution):
    """A distribution whose parameters a network computes from the condition.

    Args:
        network: Callable pytree, for example ``equinox.nn.MLP``, on the condition.
        make: Function from the network's output to a FlowJAX distribution. The guide
            can be saved if this is a class or function of ``softcvi.guides``.
        shape: Shape of a draw.
        cond_shape: Shape of the condition.

    Example:
        >>> import equinox as eqx, jax, jax.numpy as jnp
        >>> from softcvi.guides import Categorical, NetworkDistribution
        >>> mlp = eqx.nn.MLP(2, 3, 8, 1, key=jax.random.key(0))
        >>> site = NetworkDistribution(mlp, Categorical, shape=(), cond_shape=(2,))
        >>> site.sample(jax.random.key(1), condition=jnp.ones(2)).shape
        ()
    """

    network: Callable
    make: Callable
    shape: tuple[int, ...] = eqx.field(static=True)
    cond_shape: tuple[int, ...] = eqx.field(static=True)

    def _distribution(self, condition: Array) -> AbstractVectorDistribution:
        made = paramax.unwrap(self.make(self.network(condition)))
        return as_vector_distribution(made)

    def _anywhere(self) -> AbstractVectorDistribution:
        """One of the distributions: what does not depend on the condition."""
        return self._distribution(jnp.zeros(self.cond_shape))

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        return self._distribution(condition)._sample(key)

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        return self._distribution(condition)._log_prob(x)

    @property
    def has_noise(self) -> bool:
        """That of the distributions that the network makes."""
        return eqx.filter_eval_shape(lambda site: site._anywhere(), self).has_noise

    def _sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        return self._anywhere()._sample_noise(key)

    def _from_noise(
        self, noise: Float[Array, " noise"], condition: Array | None = None
    ) -> Array:
        return self._distribution(condition)._from_noise(noise)

    def _noise_owner(self) -> np.ndarray:
        made = eqx.filter_eval_shape(lambda site: site._anywhere(), self)
        return made._noise_owner()


class Conditional(eqx.Module):
    """A site of a ``SiteGuide`` that looks at earlier sites.

    Args:
        distribution: A conditional FlowJAX distribution, or a ``NetworkDistribution``.
        on: Names of the earlier sites; their values, flattened and joined, are the
            condition.

    Example:
        >>> import equinox as eqx, jax
        >>> from softcvi.guides import Categorical, Conditional, NetworkDistribution
        >>> mlp = eqx.nn.MLP(1, 3, 8, 1, key=jax.random.key(0))
        >>> site = NetworkDistribution(mlp, Categorical, shape=(), cond_shape=(1,))
        >>> Conditional(site, on=("mu",)).on
        ('mu',)
    """

    distribution: AbstractDistribution
    on: tuple[str, ...] = eqx.field(static=True, converter=tuple)

    def __check_init__(self):
        if self.distribution.cond_shape is None:
            raise ValueError(
                "distribution: is not conditional (cond_shape is None); give the site "
                "without Conditional, or use a NetworkDistribution."
            )


class SiteGuide(AbstractGuide):
    """Named sites joined into one guide, drawn in the order given.

    Args:
        sites: Mapping from site name to a FlowJAX distribution of the site's shape,
            or to ``Conditional`` for one that depends on earlier sites. A site may be
            discrete (``Categorical``, ``Bernoulli``).
        rate: Peak learning rate that ``fit`` uses unless told otherwise.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from flowjax.distributions import Normal
        >>> from softcvi.guides import Bernoulli, SiteGuide
        >>> guide = SiteGuide({"mu": Normal(0.0), "z": Bernoulli(jnp.zeros(3))})
        >>> sorted(guide.sample(jax.random.key(0)))
        ['mu', 'z']
    """

    sites: dict[str, Any]
    order: tuple[str, ...] = eqx.field(static=True)
    structure: Structure = eqx.field(static=True)
    rate: float = eqx.field(static=True)

    def __init__(
        self,
        sites: Mapping[str, AbstractDistribution | Conditional],
        *,
        rate: float = 2e-2,
    ):
        drawn_before: list[str] = []
        for name, site in sites.items():
            on = site.on if isinstance(site, Conditional) else ()
            missing = [n for n in on if n not in drawn_before]
            if missing:
                raise ValueError(
                    f"sites['{name}']: conditioned on {missing}, not among the earlier "
                    f"sites {drawn_before}. Put those sites first."
                )
            drawn_before.append(name)
        self.sites = dict(sites)
        # A pytree sorts the keys of a dict, and the order of drawing matters.
        self.order = tuple(drawn_before)
        self.rate = rate
        self.structure = Structure(
            eqx.filter_eval_shape(_draw, self.sites, self.order, jax.random.key(0))
        )

    def _sample(self, key: PRNGKeyArray, condition: PyTree = None) -> dict[str, Array]:
        refuse_condition(self, condition)
        return _draw(self.sites, self.order, key)

    def _log_prob(self, particle: dict[str, Array], condition: PyTree = None) -> Scalar:
        refuse_condition(self, condition)
        total = jnp.zeros(())
        for name in self.order:
            distribution, cond = _resolve(self.sites[name], particle)
            total = total + distribution._log_prob(particle[name], cond)
        return total

    @property
    def suggested_rate(self) -> float:
        return self.rate

    def _families(self) -> dict[str, AbstractVectorDistribution]:
        """The distribution of each site, in the order of drawing."""
        sites = {name: self.sites[name] for name in self.order}
        return {
            name: as_vector_distribution(
                site.distribution if isinstance(site, Conditional) else site
            )
            for name, site in sites.items()
        }

    @property
    def has_noise(self) -> bool:
        return all(family.has_noise for family in self._families().values())

    def _sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        keys = jax.random.split(key, len(self.order))
        families = self._families().values()
        return jnp.concatenate(
            [f._sample_noise(k) for f, k in zip(families, keys, strict=True)]
        )

    def _from_noise(
        self, noise: Float[Array, " noise"], condition: PyTree = None
    ) -> dict[str, Array]:
        refuse_condition(self, condition)
        values: dict[str, Array] = {}
        start = 0
        for name, family in self._families().items():
            stop = start + num_noise(family)
            _, cond = _resolve(self.sites[name], values)
            values[name] = family._from_noise(noise[start:stop], cond)
            start = stop
        return values

    def noise_owner(self) -> np.ndarray:
        # The vector of a particle has its leaves in the order of the structure.
        names, sizes = self.structure.names, self.structure.sizes
        offset = dict(zip(names, np.cumsum([0, *sizes])[:-1], strict=True))
        parts = []
        for name, family in paramax.unwrap(self)._families().items():
            owner = family._noise_owner()
            parts.append(np.where(owner < 0, -1, offset[name] + owner))
        return np.concatenate(parts)


def _resolve(site, values: Mapping[str, Array]):
    """The distribution of a site, and the condition that earlier sites make."""
    if not isinstance(site, Conditional):
        return site, None
    parts: Sequence[Array] = [jnp.reshape(values[name], -1) for name in site.on]
    condition = jnp.concatenate([jnp.asarray(p, float) for p in parts])
    return site.distribution, condition.reshape(site.distribution.cond_shape)


def _draw(sites: dict, order: tuple[str, ...], key: PRNGKeyArray) -> dict[str, Array]:
    sites = paramax.unwrap(sites)
    values: dict[str, Array] = {}
    for name, site_key in zip(order, jax.random.split(key, len(order)), strict=True):
        distribution, condition = _resolve(sites[name], values)
        values[name] = distribution._sample(site_key, condition)
    return values
