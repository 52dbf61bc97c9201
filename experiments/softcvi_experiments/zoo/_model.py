"""One entry of the zoo: a NumPyro model, its data, and how its truth is known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from softcvi_experiments.zoo._strategies import AbstractStrategy, LongNUTS

Scale = Literal["log", "asinh"]

_SCALES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "log": np.log,
    "asinh": np.arcsinh,
}


@dataclass(frozen=True)
class Modes:
    """The known modes of a multimodal target: which site, where, how heavy.

    A draw belongs to the nearest centre, so the centres must be far apart.

    Example:
        >>> import numpy as np
        >>> modes = Modes("x", np.array([[0.0], [9.0]]), np.array([0.3, 0.7]))
        >>> modes.shares({"x": np.array([[0.1], [8.8], [9.2], [9.1]])})
        array([0.25, 0.75])
    """

    site: str
    centres: np.ndarray
    weights: np.ndarray

    def shares(self, draws: Mapping[str, np.ndarray]) -> np.ndarray:
        """The fraction of the draws nearest to each centre."""
        x = np.asarray(draws[self.site]).reshape(-1, 1, self.centres.shape[-1])
        nearest = np.argmin(((x - self.centres) ** 2).sum(-1), axis=-1)
        return np.bincount(nearest, minlength=len(self.centres)) / len(x)


@dataclass(frozen=True)
class ZooModel:
    """A NumPyro model with its data, and the way its reference is made.

    Attributes:
        name: Unique name, used on the command line and as file name.
        model: The NumPyro model, written as a user would write it.
        kind: The family the split is stratified by ("regression", ...).
        split: "development" models may be looked at while tuning defaults;
            "report" models are only run to report.
        description: One sentence on what makes the model hard.
        args: Positional arguments of the model (the data).
        kwargs: Keyword arguments of the model.
        reference: How its truth is established (long NUTS or direct draws).
        scales: Sites whose posterior has no usable variance in the model's own
            coordinates, with the scale on which they are scored instead.
        modes: Known modes, for targets whose mode weights are scored.

    Example:
        >>> from softcvi_experiments import zoo
        >>> zoo.get("bimodal").split
        'development'
    """

    name: str
    model: Callable[..., Any]
    kind: str
    split: Literal["development", "report"]
    description: str
    args: tuple = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    reference: AbstractStrategy = field(default_factory=LongNUTS)
    scales: Mapping[str, Scale] = field(default_factory=dict)
    modes: Modes | None = None

    def scored(self, draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Draws of the latent sites on the scale on which they are scored."""
        return {
            site: _SCALES[self.scales[site]](np.asarray(value, np.float64))
            if site in self.scales
            else np.asarray(value, np.float64)
            for site, value in draws.items()
        }
