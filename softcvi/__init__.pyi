# What `import softcvi` offers. Nothing is loaded before it is used: see __init__.py.

from . import (
    adapters,
    diagnostics,
    fitting,
    guides,
    ladder,
    objectives,
    posterior,
    report,
    starts,
    sweeps,
    targets,
)
from .fitting import (
    FitError,
    FitResult,
    enable_compilation_cache,
    fit,
    fit_many,
)
from .ladder import fit_until
from .objectives import (
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
from .posterior import Posterior, load
from .sweeps import calibrate
from .targets import DensityTarget

__version__: str

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
    "adapters",
    "calibrate",
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
    "report",
    "starts",
    "sweeps",
    "targets",
]
