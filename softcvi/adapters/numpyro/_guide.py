"""NumPyro guides, AutoGuides included, as guides of softcvi."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray, PyTree, Scalar

from softcvi.adapters._extras import require
from softcvi.adapters.numpyro._call import ModelCall, substitute
from softcvi.adapters.numpyro._match import check_guide_class, check_names, is_delta
from softcvi.adapters.numpyro._noise import Noise, noise_of
from softcvi.adapters.numpyro._params import constrained, split_params
from softcvi.adapters.numpyro._place import moment_params
from softcvi.adapters.numpyro._target import NumPyroTarget
from softcvi.guides import AbstractGuide
from softcvi.targets import AbstractSpace, Structure

_TUNED_SHARE = 0.02
_SMALLEST_SCALE = 1e-5


class NumPyroGuide(AbstractGuide):
    """A NumPyro guide on the fitting space of a target; made by ``numpyro_guide``.

    Attributes:
        call: The guide function and its arguments.
        params: Unconstrained values of its ``numpyro.param`` sites.
        prefix: The AutoGuide's name for its parameters, None for other guides.
        rate: Peak learning rate where the guide is now.
        order: Names of the sites in the order of NumPyro, in which AutoGuides join
            them; ours is that of the alphabet.

    Example:
        >>> import numpyro, numpyro.distributions as dist
        >>> from softcvi.adapters import from_numpyro, numpyro_guide
        >>> def model():
        ...     numpyro.sample("mu", dist.Normal(0, 5))
        >>> def guide():
        ...     loc = numpyro.param("loc", 0.0)
        ...     numpyro.sample("mu", dist.Normal(loc, 1.0))
        >>> numpyro_guide(guide, from_numpyro(model)).structure
        Structure(mu: ())
    """

    call: ModelCall
    params: dict[str, Any]
    param_transforms: dict[str, Any]
    space: AbstractSpace
    joint_site: str | None = eqx.field(static=True)
    structure: Structure = eqx.field(static=True)
    prefix: str | None = eqx.field(static=True, default=None)
    rate: float = eqx.field(static=True, default=0.01)
    order: tuple[str, ...] = eqx.field(static=True, default=())

    @property
    def suggested_rate(self) -> float:
        return self.rate

    @property
    def can_be_matched(self) -> bool:
        size = self.structure.size
        return self._moment_params(jnp.zeros(size), jnp.eye(size)) is not None

    def matched(self, mean: Array, covariance: Array) -> "NumPyroGuide | None":
        mean, covariance = jnp.asarray(mean, float), jnp.asarray(covariance, float)
        found = self._moment_params(mean, covariance)
        if found is None:
            return None
        params = {n: self.param_transforms[n].inv(v) for n, v in found.items()}
        rate = self.rate_at(covariance)
        return dataclasses.replace(self, params=params, rate=rate)

    def rate_at(self, covariance: Array) -> float:
        """Peak rate at the posterior: a small share of the narrowest deviation.

        Locations of NumPyro's guides are in units of the model, so that steps must not
        be longer than the posterior is wide.
        """
        if isinstance(covariance, jax.core.Tracer):
            return self.rate
        narrowest = float(np.sqrt(np.min(np.diag(np.asarray(covariance)))))
        return _TUNED_SHARE * min(1.0, max(narrowest, _SMALLEST_SCALE))

    def _moment_params(self, mean: Array, covariance: Array) -> dict | None:
        if self.prefix is None or not self.structure.is_continuous:
            return None
        return moment_params(
            self.prefix, self.params, self.structure, self.order, mean, covariance
        )

    def _sample(self, key: PRNGKeyArray, condition: PyTree = None) -> dict[str, Array]:
        trace = self.call.trace(substitute(self._params()), key=key)
        x = {name: trace[name]["value"] for name in self.structure.like}
        return self.space.from_model_and_log_det(x)[0]

    def _log_prob(self, particle: dict[str, Array], condition: PyTree = None) -> Scalar:
        handlers = require("numpyro", "numpyro").handlers
        x, log_det = self.space.to_model_and_log_det(particle)
        # Where a guide draws auxiliary sites, they are the unconstrained values.
        values = {**x, **{f"{name}_unconstrained": particle[name] for name in particle}}
        if self.joint_site is not None:
            parts = [jnp.ravel(particle[name]) for name in self.order]
            values[self.joint_site] = jnp.concatenate(parts)

        def fix(site: dict) -> Any:
            return values.get(site["name"]) if _makes_draws(site) else None

        trace = self.call.trace(
            substitute(self._params()),
            lambda m: handlers.substitute(m, substitute_fn=fix),
        )
        total = jnp.zeros(())
        for site in trace.values():
            if site["type"] == "sample":
                total = total + jnp.sum(site["fn"].log_prob(site["value"]))
        return total + log_det

    @property
    def has_noise(self) -> bool:
        return all(noise is not None for noise in self._noises().values())

    def _sample_noise(self, key: PRNGKeyArray) -> Array:
        total = sum(noise.size for noise in self._noises().values() if noise)
        return jax.random.normal(key, (total,))

    def _from_noise(self, noise: Array, condition: PyTree = None) -> dict[str, Array]:
        handlers = require("numpyro", "numpyro").handlers
        at = 0

        def fix(site: dict) -> Any:
            nonlocal at
            made = noise_of(site["fn"]) if _makes_draws(site) else None
            if made is None:
                return None
            part = noise[at : at + made.size].reshape(made.shape)
            at += made.size
            return made.value(part)

        trace = self.call.trace(
            substitute(self._params()),
            lambda m: handlers.substitute(m, substitute_fn=fix),
        )
        x = {name: trace[name]["value"] for name in self.structure.like}
        return self.space.from_model_and_log_det(x)[0]

    def noise_owner(self) -> np.ndarray:
        sizes = dict(zip(self.structure.names, self.structure.sizes, strict=True))
        ends = np.cumsum([*sizes.values()])
        places = {
            name: np.arange(end - sizes[name], end)
            for name, end in zip(sizes, ends, strict=True)
        }
        if self.joint_site is not None:
            joined = [places[name] for name in self.order]
            places = {self.joint_site: np.concatenate(joined)}
        owners = []
        for name, noise in self._noises().items():
            size = 0 if noise is None else noise.size
            own = places.get(name.removesuffix("_unconstrained"), np.zeros(0, int))
            # Flows and what else has other numbers of scalars move everything.
            owners.append(own if own.size == size else np.full(size, -1))
        return np.concatenate(owners)

    def _noises(self) -> dict[str, Noise | None]:
        """How each site of the guide makes its draws; None where that is not known."""
        trace = self.call.trace(substitute(self._params()))
        return {
            name: noise_of(site["fn"])
            for name, site in trace.items()
            if _makes_draws(site)
        }

    def fitted_params(self) -> dict[str, Any]:
        """Values of the ``numpyro.param`` sites, for use in NumPyro."""
        return self._params()

    def _params(self) -> dict[str, Any]:
        return constrained(self.params, self.param_transforms)


def _makes_draws(site: dict) -> bool:
    return site["type"] == "sample" and not is_delta(site["fn"])


def numpyro_guide(
    guide: Callable, target: NumPyroTarget, params: dict[str, Any] | None = None
) -> NumPyroGuide:
    """Use a NumPyro guide, or one of its AutoGuides, with ``softcvi.fit``.

    With the parameters that ``SVI`` found, ``softcvi.Posterior(guide, target)`` gives
    k-hat, importance-corrected draws and an ArviZ tree of that fit.

    Args:
        guide: A function with ``numpyro.param`` and ``numpyro.sample`` for every latent
            site of the model, or an AutoGuide of that model.
        target: The target made from the model by ``from_numpyro``.
        params: Values of the guide's parameters, such as ``SVI(...).run(...).params``.

    Example:
        >>> import jax, jax.numpy as jnp, numpyro, numpyro.distributions as dist
        >>> import softcvi
        >>> from numpyro.infer.autoguide import AutoMultivariateNormal
        >>> from softcvi.adapters import from_numpyro, numpyro_guide
        >>> def model(y):
        ...     mu = numpyro.sample("mu", dist.Normal(0, 5))
        ...     sigma = numpyro.sample("sigma", dist.HalfNormal(2))
        ...     numpyro.sample("y", dist.Normal(mu, sigma), obs=y)
        >>> target = from_numpyro(model, jnp.array([1.0, 2.0, 3.0]))
        >>> guide = numpyro_guide(AutoMultivariateNormal(model), target)
        >>> guide.structure
        Structure(mu: (), sigma: ())
    """
    check_guide_class(guide)
    args, kwargs = target.call.arguments()
    # AutoGuides look at their model on the first call, which must not be traced.
    handlers = require("numpyro", "numpyro").handlers
    handlers.seed(guide, jax.random.key(0))(*args, **kwargs)
    call = ModelCall(guide, args, kwargs)
    trace = call.trace()
    check_names(list(target.structure.like), trace)
    for name, leaf in target.structure.like.items():
        value = target.space.from_model_and_log_det(
            {n: trace[n]["value"] for n in target.structure.like}
        )[0][name]
        if value.shape != leaf.shape:
            raise ValueError(
                f"guide: site '{name}' has shape {value.shape} in the fitting space "
                f"where the model has {leaf.shape}."
            )
    unconstrained, transforms = split_params(trace, params or {})
    prefix = getattr(guide, "prefix", None)
    joint = f"_{prefix}_latent" if prefix is not None else None
    return NumPyroGuide(
        call=call,
        params=unconstrained,
        param_transforms=transforms,
        space=target.space,
        joint_site=joint if joint in trace else None,
        structure=target.structure,
        prefix=prefix,
        order=tuple(name for name in trace if name in target.structure.like),
    )
