"""PyMC and Bambi models: targets, and a fit in the manner of ``pm.fit``."""

from softcvi.adapters.pymc._fit import Approximation, fit
from softcvi.adapters.pymc._model import from_pymc
from softcvi.adapters.pymc._target import PyMCTarget

__all__ = ["Approximation", "PyMCTarget", "fit", "from_pymc"]
