"""SiteGuide: named sites joined into one guide, each conditioned on earlier ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax
from flowjax.distributions import AbstractDistribution
from jaxtyping import Array, PRNGKeyArray, PyTree, Scalar

from softcvi.guides._base import AbstractGuide
from softcvi.targets import Structure


class NetworkDistribution(AbstractDistribution):
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

    def _distribution(self, condition: Array) -> AbstractDistribution:
        return paramax.unwrap(self.make(self.network(condition)))

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        return self._distribution(condition)._sample(key)

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        return self._distribution(condition)._log_prob(x)


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
        >>> import jax, jax.numpy as jnp, paramax
        >>> from flowjax.distributions import Normal
        >>> from softcvi.guides import Bernoulli, SiteGuide
        >>> guide = SiteGuide({"mu": Normal(0.0), "z": Bernoulli(jnp.zeros(3))})
        >>> sorted(paramax.unwrap(guide).sample(jax.random.key(0)))
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
        seen: list[str] = []
        for name, site in sites.items():
            missing = [n for n in getattr(site, "on", ()) if n not in seen]
            if missing:
                raise ValueError(
                    f"sites['{name}']: conditioned on {missing}, not among the earlier "
                    f"sites {seen}. Put those sites first."
                )
            seen.append(name)
        self.sites = dict(sites)
        # A pytree sorts the keys of a dict, and the order of drawing matters.
        self.order = tuple(seen)
        self.rate = rate
        self.structure = Structure(
            eqx.filter_eval_shape(_draw, self.sites, self.order, jax.random.key(0))
        )

    def sample(self, key: PRNGKeyArray, condition: PyTree = None) -> dict[str, Array]:
        return _draw(self.sites, self.order, key)

    def log_prob(self, particle: dict[str, Array], condition: PyTree = None) -> Scalar:
        total = jnp.zeros(())
        for name in self.order:
            distribution, cond = _resolve(self.sites[name], particle)
            total = total + distribution._log_prob(particle[name], cond)
        return total

    @property
    def suggested_rate(self) -> float:
        return self.rate


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
