"""PyMC models as targets."""

from softcvi.adapters.pymc._model import PyMCTarget, from_pymc

__all__ = ["PyMCTarget", "from_pymc"]
