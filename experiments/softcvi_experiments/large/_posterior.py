"""A large posterior: what a method gets, what is known of it, and what is asked."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from softcvi.targets import AbstractTarget
from softcvi_experiments.nuts import Chains, sample_model, sample_target

Values = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Bounds:
    """How close an answer must be.

    Attributes:
        mean: Largest error of a mean, in right standard deviations.
        sd: Largest relative error of a standard deviation.
        share: Share of the parameters that must be that close.
        log_evidence: Largest error of the log evidence; None if none is asked for.

    Example:
        >>> Bounds().share
        1.0
    """

    mean: float = 0.1
    sd: float = 0.05
    share: float = 1.0
    log_evidence: float | None = None


@dataclasses.dataclass(frozen=True)
class LargePosterior:
    """A target, and its answer where that is known in closed form.

    Attributes:
        target: What a method gets.
        bounds: What is asked.
        mean: Exact mean of each site in model coordinates; None where long chains
            must tell.
        sd: Exact standard deviation of each site.
        log_evidence: Exact log evidence.
        model: NumPyro model in the coordinates that suit NUTS, with the same names.
        sites: Names that are compared; all of ``target`` if empty.
        guides: Guides and objectives of interest besides those of the program.

    Example:
        >>> from softcvi_experiments.large import get_case
        >>> get_case("normal-300", small=True).target.structure.size
        6
    """

    target: AbstractTarget
    bounds: Bounds
    mean: Values | None = None
    sd: Values | None = None
    log_evidence: float | None = None
    model: Callable | None = None
    sites: tuple[str, ...] = ()
    guides: Mapping[str, Callable[[AbstractTarget], tuple[Any, Any]]] = (
        dataclasses.field(default_factory=dict)
    )

    def compared(self, draws: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The sites that are compared, on the host and in double precision."""
        names = self.sites or tuple(draws)
        return {name: np.asarray(draws[name], np.float64) for name in names}

    def nuts(self, key, *, chains: int, warmup: int, samples: int) -> Chains:
        """NumPyro's NUTS at its defaults."""
        if self.model is None:
            return sample_target(
                key, self.target, chains=chains, warmup=warmup, samples=samples
            )
        return sample_model(
            key, self.model, chains=chains, warmup=warmup, samples=samples
        )
