"""Posteriors as ArviZ DataTrees."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from softcvi.adapters._extras import require
from softcvi.adapters._model_target import AbstractModelTarget, over_draws
from softcvi.ladder import Answer
from softcvi.posterior import ImportanceSample, Posterior
from softcvi.targets import AbstractTarget


def to_arviz(
    posterior: Posterior | Answer,
    key: PRNGKeyArray | None = None,
    n: int = 1000,
    *,
    draws: Mapping[str, Any] | None = None,
    corrected: bool = False,
    predictive: bool = True,
    prior: bool = False,
    coords: dict[str, Any] | None = None,
    dims: dict[str, list[str]] | None = None,
):
    """An ArviZ DataTree of draws, weights and, where the model is known, data.

    Groups: ``posterior``; ``sample_stats`` with ``log_p``, ``log_q``, ``log_weight``
    (Pareto smoothed, normalised) and the attribute ``khat``; for a model of
    ``from_numpyro`` or ``from_pymc`` also ``log_likelihood``,
    ``posterior_predictive``, ``observed_data`` and ``constant_data``, with dimensions
    named after plates or ``dims``. All draws are one chain: they are independent. A
    slash in a name (``handlers.scope``) becomes a dot.

    Args:
        posterior: What ``fit`` and ``fit_until`` return, whose draws are those that the
            verdict is about, or a fitted posterior, whose draws have weights. Without
            the target (see ``softcvi.load``) there are draws and ``log_q`` only.
        key: Random key; a fixed one by default.
        n: Number of draws.
        draws: Use these draws, such as those of ``result.sample``, instead of new ones;
            ``sample_stats`` then has ``log_p`` only, and no weights.
        corrected: Resample the draws of a posterior by their weights. ``log_p`` and
            ``log_q`` then belong to the resampled draws.
        predictive: Whether to draw replicates of the data.
        prior: Whether to draw from the prior too: the groups ``prior`` and
            ``prior_predictive``.
        coords: Coordinates that replace or add to those of the model.
        dims: Names of dimensions that replace or add to those of the model.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> from softcvi.adapters import to_arviz
        >>> target = softcvi.DensityTarget(
        ...     lambda t: -0.5 * jnp.sum(t["x"] ** 2), {"x": jnp.zeros(2)}
        ... )
        >>> posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
        >>> tree = to_arviz(posterior, n=100)
        >>> tree["posterior"]["x"].shape, tree["sample_stats"]["log_q"].shape
        ((1, 100, 2), (1, 100))
    """
    arviz_base = require("arviz_base", "arviz")
    key = jax.random.key(0) if key is None else key
    draw_key, resample_key, data_key = jax.random.split(key, 3)
    if not isinstance(posterior, Posterior):
        if corrected:
            raise ValueError(
                "corrected: the draws of a fit are those of its verdict, corrected "
                "where it says so; pass result.posterior to correct those of the guide."
            )
        draws = posterior.sample(draw_key, n) if draws is None else draws
        posterior = posterior.posterior
    target = None if posterior.target is None else posterior.target.unwrapped
    if draws is not None:
        more = _of_model(target, draws, data_key, predictive, prior)
        if _has_parameters(target, draws):
            more[0]["sample_stats"] = {"log_p": _log_p(target, draws)}
        return _of_given(arviz_base, draws, more, coords, dims)
    if target is None:
        if corrected:
            raise ValueError(
                "corrected: weights need the model; load the posterior with "
                "softcvi.load(path, target=target)."
            )
        draws = posterior.sample(draw_key, n)
        log_q = np.asarray(posterior.log_prob(draws))
        groups = {"posterior": draws, "sample_stats": {"log_q": log_q}}
        return _tree(arviz_base, groups, {}, coords or {}, dims or {}, {})

    sample = posterior.importance(draw_key, 4 * n if corrected else n)
    khat = sample.khat
    if corrected:
        sample = _resampled(resample_key, sample, n)
    groups = {
        "posterior": sample.draws,
        "sample_stats": {
            "log_p": sample.log_p,
            "log_q": sample.log_q,
            "log_weight": sample.log_weights,
        },
    }
    more, constant, model_coords, model_dims = _of_model(
        target, sample.draws, data_key, predictive, prior
    )
    groups |= more
    facts = {"khat": khat, "log_evidence": sample.log_evidence}
    return _tree(
        arviz_base,
        groups,
        constant,
        {**model_coords, **(coords or {})},
        {**model_dims, **(dims or {})},
        facts,
    )


def _of_given(arviz_base, draws, more, coords, dims):
    """A tree of draws that came from elsewhere, with what the model says of them."""
    groups, constant, model_coords, model_dims = more
    return _tree(
        arviz_base,
        {"posterior": draws, **groups},
        constant,
        {**model_coords, **(coords or {})},
        {**model_dims, **(dims or {})},
        {},
    )


def _of_model(target, draws, key, predictive: bool, prior: bool):
    """Groups of draws, constant groups, coordinates and dimensions of a model."""
    if not isinstance(target, AbstractModelTarget):
        return {}, {}, {}, {}
    data_key, prior_key = jax.random.split(key)
    groups = {"log_likelihood": over_draws(target.log_likelihood, draws)}
    observed = target.observed_data()
    if predictive:
        groups["posterior_predictive"] = _if_possible(
            "posterior_predictive", target.predict_draws, data_key, draws
        )
    if prior:
        n = len(next(iter(draws.values())))
        drawn = _if_possible("prior", target.prior_draws, prior_key, n)
        groups["prior"] = {n: v for n, v in drawn.items() if n not in observed}
        groups["prior_predictive"] = {n: v for n, v in drawn.items() if n in observed}
    constant = {"observed_data": observed, "constant_data": target.constant_data()}
    return groups, constant, target.coords(), target.dims()


def _if_possible(group: str, draw: Callable, *args) -> dict[str, Any]:
    """Draws of a group; none where the model cannot be drawn from, which is said."""
    try:
        return draw(*args)
    except NotImplementedError as error:
        reason = str(error).splitlines()[0]
        warnings.warn(
            f"to_arviz: the group '{group}' is left out, for the model cannot be drawn "
            f"from: {reason}",
            stacklevel=4,
        )
        return {}


def _has_parameters(
    target: AbstractTarget | None, draws: Mapping[str, Any]
) -> TypeGuard[AbstractModelTarget]:
    """Whether draws tell where they are: those of Stan have its own names alone."""
    if not isinstance(target, AbstractModelTarget):
        return False
    return set(target.structure.like) <= set(draws)


def _log_p(target: AbstractModelTarget, draws: Mapping[str, Any]) -> np.ndarray:
    """Unnormalised log posterior of draws, in model coordinates."""

    def one(x):
        u, log_det = target.space.from_model_and_log_det(x)
        return target.log_density(u) + log_det

    return over_draws(one, {name: draws[name] for name in target.structure.like})


def _tree(arviz_base, groups, constant, coords, dims, facts):
    data = {
        group: {_label(name): np.asarray(v)[None] for name, v in values.items()}
        for group, values in groups.items()
        if values
    }
    data |= {
        group: {_label(name): value for name, value in values.items()}
        for group, values in constant.items()
        if values
    }
    dims = {_label(n): [_label(d) for d in names] for n, names in dims.items()}
    coords = {_label(name): values for name, values in coords.items()}
    known = {name for values in data.values() for name in values}
    dims = {name: list(names) for name, names in dims.items() if name in known}
    used = {name for names in dims.values() for name in names}
    coords = {name: values for name, values in coords.items() if name in used}
    attributes = {"inference_library": "softcvi"}
    attrs = {"/": attributes, "posterior": attributes}
    if "sample_stats" in data:
        attrs["sample_stats"] = facts
    return arviz_base.from_dict(data, coords=coords, dims=dims, attrs=attrs)


def _label(name: str) -> str:
    """A name that a DataTree accepts: a slash is its separator of paths."""
    return name.replace("/", ".")


def _resampled(key: PRNGKeyArray, sample: ImportanceSample, n: int) -> ImportanceSample:
    weights = np.exp(sample.log_weights)
    index = np.asarray(
        jax.random.choice(key, weights.size, (n,), p=weights / weights.sum())
    )
    return ImportanceSample(
        draws=jax.tree_util.tree_map(lambda leaf: leaf[index], sample.draws),
        log_p=sample.log_p[index],
        log_q=sample.log_q[index],
        log_weights=np.full(n, -np.log(n)),
        khat=sample.khat,
        log_evidence=sample.log_evidence,
    )
