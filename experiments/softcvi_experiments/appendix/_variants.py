"""Variants of SoftCVI, grouped into studies of one choice each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from softcvi.objectives import (
    AbstractNegative,
    AbstractObjective,
    Alpha,
    ChiSquared,
    DefensiveProposal,
    ForwardKL,
    JensenShannon,
    Particles,
    ReverseKL,
    SoftCVI,
    TemperedProposal,
)
from softcvi_experiments.tasks import AbstractTask


@dataclass(frozen=True)
class Variant:
    """One way to run SoftCVI.

    Args:
        name: What records call it.
        label: What figures call it.
        objective: Makes the objective from the task and K.

    Example:
        >>> from softcvi_experiments.tasks import get_task
        >>> get_study("alpha")[0].objective(get_task("slcp"), 4).num_particles
        4
    """

    name: str
    label: str
    objective: Callable[[AbstractTask, int], AbstractObjective]


class LabelEssNegative(AbstractNegative):
    """Proposal^alpha with the smallest alpha whose label ESS exceeds 0.3 K.

    The rule of the start-up phase, applied to the whole run: the candidate for an
    automatic choice of alpha.

    Example:
        >>> SoftCVI(negative=LabelEssNegative()).num_particles
        8
    """

    start_up: TemperedProposal = TemperedProposal(0.0)

    def log_prob(self, particles: Particles) -> Float[Array, " k"]:
        return self.start_up.log_prob_starting(particles)


def _softcvi(task: AbstractTask, num_particles: int, **parts: Any) -> SoftCVI:
    return SoftCVI(num_particles, **parts)


def _divergences() -> list[Variant]:
    choices = {
        "forward KL": ForwardKL(),
        "reverse KL": ReverseKL(),
        "Jensen-Shannon": JensenShannon(),
        "alpha 0.5": Alpha(0.5),
        "chi-squared": ChiSquared(),
    }
    return [
        Variant(
            f"divergence {name}",
            name,
            partial(_softcvi, divergence=divergence),
        )
        for name, divergence in choices.items()
    ]


def _temperatures() -> list[Variant]:
    # An array is traced, so that all values share one compiled program.
    return [
        Variant(
            f"temperature {value:g}",
            f"{value:g}",
            partial(_softcvi, temperature=jnp.asarray(value)),
        )
        for value in (0.5, 1.0, 2.0, 4.0)
    ]


def _smoothings() -> list[Variant]:
    return [
        Variant(
            f"smoothing {value:g}",
            f"{value:g}",
            partial(_softcvi, label_smoothing=value),
        )
        for value in (0.0, 0.01, 0.05, 0.1, 0.2)
    ]


def _defensive(task: AbstractTask, num_particles: int, share: float) -> SoftCVI:
    # The guide's own start values are wide in all four tasks.
    wide = task.guide(jr.key(0))
    return SoftCVI(num_particles, proposal=DefensiveProposal(wide, share=share))


def _proposals() -> list[Variant]:
    return [
        Variant("proposal guide", "guide", _softcvi),
        *(
            Variant(
                f"proposal {share:g} from the start",
                f"{share:g} from the start",
                partial(_defensive, share=share),
            )
            for share in (0.05, 0.125, 0.25, 0.5)
        ),
    ]


def _alphas() -> list[Variant]:
    fixed = [
        Variant(
            f"alpha {i / 8:g}",
            f"{i / 8:g}",
            partial(_softcvi, negative=TemperedProposal(jnp.asarray(i / 8))),
        )
        for i in range(9)
    ]
    rule = Variant(
        "alpha by label ESS",
        "label ESS",
        partial(_softcvi, negative=LabelEssNegative()),
    )
    return [*fixed, rule]


_STUDIES: dict[str, Callable[[], list[Variant]]] = {
    "divergences": _divergences,
    "temperature": _temperatures,
    "smoothing": _smoothings,
    "proposals": _proposals,
    "alpha": _alphas,
}
STUDIES = tuple(_STUDIES)
# What SoftCVI does unless told otherwise, by study.
DEFAULTS = {
    "divergence forward KL",
    "temperature 1",
    "smoothing 0",
    "proposal guide",
    "alpha 0.75",
}


def get_study(name: str) -> list[Variant]:
    """The variants of a study.

    Args:
        name: One of ``STUDIES``.

    Example:
        >>> [variant.label for variant in get_study("temperature")]
        ['0.5', '1', '2', '4']
        >>> get_study("weather")
        Traceback (most recent call last):
        ...
        ValueError: unknown study 'weather'; known: divergences, ...
    """
    if name not in _STUDIES:
        raise ValueError(f"unknown study {name!r}; known: {', '.join(STUDIES)}")
    return _STUDIES[name]()
