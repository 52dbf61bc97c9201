"""Reading a stored posterior."""

import os

import equinox as eqx
import jax

from softcvi.guides import AbstractGuide
from softcvi.posterior import _storage
from softcvi.posterior._posterior import Posterior
from softcvi.targets import AbstractSpace, AbstractTarget, Structure


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
