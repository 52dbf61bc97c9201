"""NumPyro: models, guides and a loss for its SVI."""

from softcvi.adapters.numpyro._guide import NumPyroGuide, numpyro_guide
from softcvi.adapters.numpyro._model import from_numpyro
from softcvi.adapters.numpyro._run_svi import SVIFit, svi
from softcvi.adapters.numpyro._space import SiteSpace
from softcvi.adapters.numpyro._svi import SoftCVILoss
from softcvi.adapters.numpyro._target import NumPyroTarget

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
