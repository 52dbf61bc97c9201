"""Spaces of NumPyro models: each site through the bijection of its own support."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Scalar

from softcvi.adapters._extras import require
from softcvi.adapters._recentre import Prior
from softcvi.adapters.numpyro._call import (
    ModelCall,
    is_in_loop,
    moving_sites,
    substitute,
)
from softcvi.adapters.numpyro._decentre import prior_of, standardising, step_of
from softcvi.targets import AbstractSpace, Informed, SpaceOfModel


class SiteSpace(AbstractSpace):
    """Named sites through NumPyro transforms; discrete sites are counted from zero.

    Args:
        transforms: NumPyro transform of each continuous site, from the real line.
        offsets: Smallest value of each discrete site.

    Example:
        >>> import jax.numpy as jnp
        >>> from numpyro.distributions import transforms
        >>> from softcvi.adapters import SiteSpace
        >>> space = SiteSpace({"tau": transforms.ExpTransform()}, {})
        >>> x, log_det = space.to_model_and_log_det({"tau": jnp.zeros(())})
        >>> float(x["tau"]), float(log_det)
        (1.0, 0.0)
    """

    transforms: dict[str, Any]
    offsets: dict[str, Any]

    def to_model_and_log_det(self, u: dict) -> tuple[dict, Scalar]:
        x, total = {}, jnp.zeros(())
        for name, value in u.items():
            if name in self.offsets:
                x[name] = value + self.offsets[name]
                continue
            x[name], log_det = _forward(self.transforms[name], value)
            total = total + log_det
        return x, total

    def from_model_and_log_det(self, x: dict) -> tuple[dict, Scalar]:
        u, total = {}, jnp.zeros(())
        for name in [*self.transforms, *self.offsets]:
            value = jnp.asarray(x[name])
            if name in self.offsets:
                u[name] = value - self.offsets[name]
                continue
            u[name], log_det = _backward(self.transforms[name], value)
            total = total + log_det
        return u, total


class DynamicSpace(AbstractSpace):
    """Sites whose map depends on other sites: the model itself is the map.

    Args:
        call: The model.
        offsets: Smallest value of each discrete site.
        names: Names of the latent sites.
        decentred: Names of the sites that are fitted in standardised coordinates.
        informed: What the data say of these, by name, where that is used.
        looped: Transforms of the sites inside ``scan`` that are not standardised: their
            values are not at hand while the loop runs, and they are the same for every
            value of other sites.
        stepped: Names of the sites inside ``scan`` that are standardised, each step
            given those before it.
    """

    call: ModelCall
    offsets: dict[str, Any]
    names: tuple[str, ...] = eqx.field(static=True)
    decentred: tuple[str, ...] = eqx.field(static=True, default=())
    informed: Mapping[str, Informed] = eqx.field(default_factory=dict)
    looped: dict[str, Any] = eqx.field(default_factory=dict)
    stepped: tuple[str, ...] = eqx.field(static=True, default=())

    def stored(self) -> SpaceOfModel:
        return SpaceOfModel(self.decentred, self.informed)

    def priors(self, u: dict) -> dict[str, Prior]:
        """Location and scale of the standardised sites where their parents are."""
        trace = self.call.trace(substitute(self.to_model(u)))
        found = {name: prior_of(trace[name]["fn"]) for name in self.decentred}
        priors = {name: each[0] for name, each in found.items() if each is not None}
        # What the data say of one step is about all that follow too: a series is
        # standardised as a whole, like a vector with a matrix.
        return {
            name: prior._replace(is_matrix=prior.is_matrix or name in self.stepped)
            for name, prior in priors.items()
        }

    def to_model_and_log_det(self, u: dict) -> tuple[dict, Scalar]:
        x, log_dets = self.to_model_and_log_dets(u)
        return x, sum(log_dets.values(), jnp.zeros(()))

    def to_model_and_log_dets(self, u: dict) -> tuple[dict, dict[str, Scalar]]:
        """Model coordinates, and the log Jacobian of each continuous site."""
        return self._walk(u, _forward, 1)

    def from_model_and_log_det(self, x: dict) -> tuple[dict, Scalar]:
        u, log_dets = self._walk(x, _backward, -1)
        return u, sum(log_dets.values(), jnp.zeros(()))

    def _walk(
        self, values: dict, move: Callable, sign: int
    ) -> tuple[dict, dict[str, Scalar]]:
        numpyro = require("numpyro", "numpyro")
        out: dict[str, Any] = {}
        log_dets: dict[str, Scalar] = {}
        for name, transform in self.looped.items():
            out[name], log_dets[name] = move(transform, jnp.asarray(values[name]))
        of_model = out if sign > 0 else values
        in_loops = {name: of_model[name] for name in self.looped}
        if sign < 0:
            in_loops |= {name: values[name] for name in self.stepped}

        def fix(site: dict) -> Any:
            name = site["name"]
            if site["type"] != "sample" or name not in self.names:
                return None
            if name in in_loops:
                return None
            value = jnp.asarray(values[name])
            if name in self.stepped:
                return standardising(site["fn"])(value[step_of(site)])
            if name in self.offsets:
                out[name] = value + sign * self.offsets[name]
            else:
                transform = (
                    standardising(site["fn"], self.informed.get(name))
                    if name in self.decentred
                    else transform_of(site)
                )
                out[name], log_dets[name] = move(transform, value)
            return out[name] if sign > 0 else value

        trace = self.call.trace(
            substitute(in_loops),
            lambda m: numpyro.handlers.substitute(m, substitute_fn=fix),
        )
        for name in self.stepped:
            site = trace[name]
            transform = standardising(site["fn"])
            if sign > 0:
                u, out[name] = jnp.asarray(values[name]), site["value"]
                log_det = transform.log_abs_det_jacobian(u, out[name])
                log_dets[name] = jnp.sum(log_det)
            else:
                out[name], log_dets[name] = move(transform, jnp.asarray(values[name]))
        return {name: out[name] for name in self.names}, log_dets


def with_log_dets(space: AbstractSpace, u: dict) -> tuple[dict, dict[str, Scalar]]:
    """Model coordinates, and log Jacobians by site where a space knows these."""
    if isinstance(space, DynamicSpace):
        return space.to_model_and_log_dets(u)
    x, log_det = space.to_model_and_log_det(u)
    return x, {"all sites": log_det}


def transform_of(site: dict) -> Any:
    """The transform from the real line to the support of a site."""
    numpyro = require("numpyro", "numpyro")
    support = site["fn"].support
    try:
        return numpyro.distributions.biject_to(support)
    except NotImplementedError as error:
        raise ValueError(
            f"model: site '{site['name']}' has the support {support}, and NumPyro's "
            "biject_to knows no way to it from the real line. Register one with "
            "numpyro.distributions.biject_to.register, or fit in the model's own "
            "coordinates: from_numpyro(..., space='model') and a guide on that support."
        ) from error


def make_space(
    call: ModelCall,
    latents: dict[str, dict],
    offsets: dict[str, Any],
    standard: SpaceOfModel | None = None,
) -> AbstractSpace:
    """The unconstrained space of a model, by constant transforms where that can be.

    Args:
        call: The model.
        latents: Its latent sites.
        offsets: Smallest value of each discrete site.
        standard: Which sites to fit in standardised coordinates; none by default.
    """
    standard = SpaceOfModel() if standard is None else standard
    decentred, informed = standard.decentred, standard.informed
    continuous = [name for name in latents if name not in offsets]
    transforms = {name: transform_of(latents[name]) for name in continuous}

    def transform_if_continuous(site: dict) -> Any:
        return None if site["name"] in offsets else transform_of(site)

    if decentred or moving_sites(call, latents, transform_if_continuous):
        loops = {n: t for n, t in transforms.items() if is_in_loop(latents[n])}
        looped = {n: t for n, t in loops.items() if n not in decentred}
        stepped = tuple(name for name in loops if name in decentred)
        names = tuple(latents)
        return DynamicSpace(call, offsets, names, decentred, informed, looped, stepped)
    return SiteSpace(transforms, offsets)


def _forward(transform: Any, u: Array) -> tuple[Array, Scalar]:
    x = transform(u)
    return x, jnp.sum(transform.log_abs_det_jacobian(u, x))


def _backward(transform: Any, x: Array) -> tuple[Array, Scalar]:
    u = transform.inv(x)
    return u, -jnp.sum(transform.log_abs_det_jacobian(u, x))
