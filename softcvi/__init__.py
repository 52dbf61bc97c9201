"""Bayesian inference by contrastive variational inference (SoftCVI), on JAX."""

import importlib

from softcvi import (
    diagnostics,
    fitting,
    guides,
    ladder,
    objectives,
    posterior,
    starts,
    targets,
)
from softcvi.fitting import (
    FitError,
    FitResult,
    enable_compilation_cache,
    fit,
    fit_many,
)
from softcvi.ladder import fit_until
from softcvi.objectives import (
    ELBO,
    Alpha,
    ChiSquared,
    CustomNegative,
    FDivergence,
    FlatNegative,
    ForwardKL,
    JensenShannon,
    ReverseKL,
    SNISForwardKL,
    SoftCVI,
    TemperedPosterior,
    TemperedProposal,
    WithModelTerm,
)
from softcvi.posterior import Posterior, load
from softcvi.targets import DensityTarget

__version__ = "0.1.0"

__all__ = [
    "ELBO",
    "Alpha",
    "ChiSquared",
    "CustomNegative",
    "DensityTarget",
    "FDivergence",
    "FitError",
    "FitResult",
    "FlatNegative",
    "ForwardKL",
    "JensenShannon",
    "Posterior",
    "ReverseKL",
    "SNISForwardKL",
    "SoftCVI",
    "TemperedPosterior",
    "TemperedProposal",
    "WithModelTerm",
    "diagnostics",
    "enable_compilation_cache",
    "fit",
    "fit_many",
    "fit_until",
    "fitting",
    "guides",
    "ladder",
    "load",
    "objectives",
    "posterior",
    "starts",
    "targets",
]

_ON_DEMAND = ("adapters", "report", "sweeps")


def __getattr__(name: str):
    # Subpackages that few programs need are imported when they are first asked for.
    if name in _ON_DEMAND:
        return importlib.import_module(f"softcvi.{name}")
    raise AttributeError(f"module 'softcvi' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_DEMAND})
