"""Methods by name: the objectives that the paper compares."""

from collections.abc import Callable
from typing import Literal

from softcvi.objectives import (
    ELBO,
    AbstractObjective,
    SNISForwardKL,
    SoftCVI,
    TemperedPosterior,
    TemperedProposal,
)

NegativeName = Literal["proposal", "posterior"]
_NEGATIVES = {"proposal": TemperedProposal, "posterior": TemperedPosterior}


def _softcvi(alpha: float) -> Callable[[int, NegativeName], AbstractObjective]:
    return lambda num_particles, negative: SoftCVI(
        num_particles, negative=_NEGATIVES[negative](alpha)
    )


_MAKERS: dict[str, Callable[[int, NegativeName], AbstractObjective]] = {
    "softcvi-0.75": _softcvi(0.75),
    "softcvi-1": _softcvi(1.0),
    "softcvi-0": _softcvi(0.0),
    "snis-fkl": lambda num_particles, _: SNISForwardKL(num_particles),
    "snis-fkl-low-variance": lambda num_particles, _: SNISForwardKL(
        num_particles, low_variance=True
    ),
    "elbo": lambda num_particles, _: ELBO(num_particles),
    "elbo-stl": lambda num_particles, _: ELBO(num_particles, stick_the_landing=True),
}

METHODS = tuple(_MAKERS)
PAPER_METHODS = ("softcvi-0.75", "softcvi-1", "snis-fkl", "elbo")
WITHOUT_NEGATIVE = tuple(name for name in METHODS if not name.startswith("softcvi"))


def get_objective(
    method: str, num_particles: int = 8, negative: NegativeName = "proposal"
) -> AbstractObjective:
    """Make the objective that a method name stands for.

    Args:
        method: One of ``METHODS``.
        num_particles: K.
        negative: What SoftCVI's negative tempers: the proposal or the posterior.

    Example:
        >>> get_objective("softcvi-1").negative.alpha
        1.0
        >>> get_objective("vae")
        Traceback (most recent call last):
        ...
        ValueError: unknown method 'vae'; known: softcvi-0.75, ...
    """
    if method not in _MAKERS:
        raise ValueError(f"unknown method {method!r}; known: {', '.join(METHODS)}")
    if negative not in _NEGATIVES:
        known = ", ".join(_NEGATIVES)
        raise ValueError(f"unknown negative {negative!r}; known: {known}")
    return _MAKERS[method](num_particles, negative)
