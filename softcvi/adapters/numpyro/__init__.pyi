# What `softcvi.adapters.numpyro` offers. Nothing is loaded before it is used.

from ._guide import NumPyroGuide, numpyro_guide
from ._model import from_numpyro
from ._run_svi import SVIFit, svi
from ._space import SiteSpace
from ._svi import SoftCVILoss
from ._target import NumPyroTarget

__all__ = [
    "NumPyroGuide",
    "NumPyroTarget",
    "SVIFit",
    "SiteSpace",
    "SoftCVILoss",
    "from_numpyro",
    "numpyro_guide",
    "svi",
]
