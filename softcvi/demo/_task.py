"""What a demo needs to know of a posterior."""

import dataclasses
from collections.abc import Callable, Mapping
from importlib.resources import files

import jax
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from softcvi.guides import AbstractGuide
from softcvi.targets import DensityTarget

Draws = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class DemoTask:
    """A posterior, a guide for it, and what to compare with.

    Args:
        name: Short name, and that of its file of draws.
        title: What people call it.
        target: The posterior.
        guide: Makes a guide from a key.
        reference: Draws taken as the truth.
        pair: Two scalars that are worth a picture.
        steps: Steps that a demo takes.
        features: What to look at, computed from draws, in words.

    Example:
        >>> from softcvi.demo import slcp
        >>> slcp().reference["theta"].shape
        (1000, 5)
    """

    name: str
    title: str
    target: DensityTarget
    guide: Callable[[PRNGKeyArray], AbstractGuide]
    reference: Draws
    pair: tuple[str, str]
    steps: int
    features: Mapping[str, Callable[[Draws], str]]


def stored(name: str) -> tuple[Draws, dict[str, Array]]:
    """Reference draws and data from the package.

    Args:
        name: Name of a file in ``softcvi/demo/data``.

    Example:
        >>> draws, observed = stored("eight_schools")
        >>> observed["y"].shape
        (8,)
    """
    with (
        files("softcvi.demo").joinpath("data", f"{name}.npz").open("rb") as handle,
        np.load(handle, allow_pickle=False) as arrays,
    ):
        parts: dict[str, dict[str, np.ndarray]] = {"draws": {}, "observed": {}}
        for key in arrays.files:
            group, _, short = key.partition("/")
            parts[group][short] = arrays[key]
    observed = {k: jax.numpy.asarray(v, float) for k, v in parts["observed"].items()}
    return parts["draws"], observed
