"""Bayesian inference by contrastive variational inference (SoftCVI), on JAX."""

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
