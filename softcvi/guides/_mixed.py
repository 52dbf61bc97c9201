"""A guide for particles that are partly discrete."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar

from softcvi.guides._base import AbstractGuide, num_noise
from softcvi.guides._discrete import (
    categorical_from_noise,
    categorical_log_prob,
    categorical_noise_owner,
)
from softcvi.guides._gaussian import full_rank, mean_field
from softcvi.guides._parameters import refuse_condition
from softcvi.targets import AbstractTarget, Structure

_FULL_RANK_DIM = 30


class MixedGuide(AbstractGuide):
    """Continuous leaves first, then categorical ones whose logits follow them.

    Given the continuous leaves, the discrete ones are independent categoricals with
    logits that are linear in them: exact for a mixture with known parameters, and
    close to the truth where the parameters are well determined.

    Args:
        continuous: Guide over the dict of continuous leaves, or None if there are none.
        logits: For each discrete leaf, an array of its shape and one more axis with
            an entry per value.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> normal = softcvi.guides.mean_field({"mu": jnp.zeros(2)})
        >>> guide = softcvi.guides.MixedGuide(normal, {"z": jnp.zeros((5, 2))})
        >>> guide.sample(jax.random.key(0))["z"].shape
        (5,)
    """

    continuous: AbstractGuide | None
    logits: dict[str, Float[Array, "... values"]]
    slopes: dict[str, Float[Array, "... values d"]]
    structure: Structure = eqx.field(static=True)

    def __init__(
        self,
        continuous: AbstractGuide | None,
        logits: dict[str, Float[Array, "... values"]],
    ):
        size = 0 if continuous is None else continuous.structure.size
        like = {} if continuous is None else dict(continuous.structure.like)
        for name, table in logits.items():
            like[name] = jax.ShapeDtypeStruct(table.shape[:-1], jnp.int32)
        self.continuous = continuous
        self.logits = {name: jnp.asarray(table) for name, table in logits.items()}
        self.slopes = {n: jnp.zeros((*t.shape, size)) for n, t in self.logits.items()}
        self.structure = Structure(like)

    def _sample(self, key: PRNGKeyArray, condition: PyTree = None) -> dict[str, Array]:
        refuse_condition(self, condition)
        first, *keys = jax.random.split(key, len(self.logits) + 1)
        values = {} if self.continuous is None else dict(self.continuous._sample(first))
        vector = self._vector(values)
        for name, site_key in zip(self.logits, keys, strict=True):
            draw = jax.random.categorical(site_key, self._table(name, vector))
            values[name] = draw.astype(jnp.int32)
        return values

    def _log_prob(self, particle: dict[str, Array], condition: PyTree = None) -> Scalar:
        refuse_condition(self, condition)
        total = jnp.zeros(())
        if self.continuous is not None:
            names = self.continuous.structure.like
            total = self.continuous._log_prob({name: particle[name] for name in names})
        vector = self._vector(particle)
        for name in self.logits:
            table = self._table(name, vector)
            total = total + categorical_log_prob(table, particle[name])
        return total

    @property
    def has_noise(self) -> bool:
        return self.continuous is None or self.continuous.has_noise

    def _sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        first, *keys = jax.random.split(key, len(self.logits) + 1)
        parts = (
            [] if self.continuous is None else [self.continuous._sample_noise(first)]
        )
        for table, site_key in zip(self.logits.values(), keys, strict=True):
            parts.append(jax.random.gumbel(site_key, (table.size,), table.dtype))
        return jnp.concatenate(parts)

    def _from_noise(
        self, noise: Float[Array, " noise"], condition: PyTree = None
    ) -> dict[str, Array]:
        refuse_condition(self, condition)
        values, start = {}, self._num_continuous_noise()
        if self.continuous is not None:
            values = dict(self.continuous._from_noise(noise[:start]))
        vector = self._vector(values)
        for name, table in self.logits.items():
            stop = start + table.size
            logits = self._table(name, vector)
            values[name] = categorical_from_noise(logits, noise[start:stop])
            start = stop
        return values

    def noise_owner(self) -> np.ndarray:
        sizes = dict(zip(self.structure.names, self.structure.sizes, strict=True))
        before = np.cumsum([0, *sizes.values()])[:-1]
        offset = dict(zip(sizes, before, strict=True))
        parts = []
        if self.continuous is not None:
            names = self.continuous.structure.names
            # Where each scalar of the continuous part stands in the whole particle.
            position = np.concatenate([offset[n] + np.arange(sizes[n]) for n in names])
            owner = self.continuous.noise_owner()
            parts.append(np.where(owner < 0, -1, position[owner]))
        for name, table in self.logits.items():
            parts.append(offset[name] + categorical_noise_owner(table.shape))
        return np.concatenate(parts)

    def _num_continuous_noise(self) -> int:
        return 0 if self.continuous is None else num_noise(self.continuous)

    def probabilities(self) -> dict[str, Array]:
        """Probability of each value, where the continuous leaves are zero."""
        return {name: jax.nn.softmax(table) for name, table in self.logits.items()}

    def _vector(self, values: dict[str, Array]) -> Array:
        if self.continuous is None:
            return jnp.zeros(0)
        structure = self.continuous.structure
        return structure.ravel({name: values[name] for name in structure.like})

    def _table(self, name: str, vector: Array) -> Array:
        return self.logits[name] + self.slopes[name] @ vector


def mixed(target: AbstractTarget) -> MixedGuide:
    """A guide for a target with discrete leaves: normal, then categorical.

    Args:
        target: A target that knows how many values each discrete leaf can take, such
            as one from ``softcvi.adapters.from_numpyro``.

    Example:
        >>> import numpyro, numpyro.distributions as dist, softcvi
        >>> from softcvi.adapters import from_numpyro
        >>> def model():
        ...     z = numpyro.sample("z", dist.Bernoulli(0.3))
        ...     numpyro.sample("x", dist.Normal(z, 1.0))
        >>> softcvi.guides.mixed(from_numpyro(model)).structure
        Structure(x: (), z: ())
    """
    sizes = target.num_values()
    unknown = [n for n in target.structure.discrete_names if n not in sizes]
    if unknown:
        raise ValueError(
            f"guide: {unknown} are discrete, and how many values they can take is not "
            "known. Use softcvi.guides.SiteGuide with a distribution for each site, "
            "such as a Categorical over a range that is wide enough."
        )
    like = target.like
    floats = {name: leaf for name, leaf in like.items() if name not in sizes}
    continuous = None
    if floats:
        small = Structure(floats).size <= _FULL_RANK_DIM
        continuous = full_rank(floats) if small else mean_field(floats)
    logits = {n: jnp.zeros((*like[n].shape, size)) for n, size in sizes.items()}
    return MixedGuide(continuous, logits)
