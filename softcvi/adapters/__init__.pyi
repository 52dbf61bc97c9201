# What `softcvi.adapters` offers. Nothing is loaded before it is used.

from . import numpyro, pymc, stan
from ._arviz import to_arviz
from ._ask_tell import AskTellSession
from ._blackjax import VIAlgorithm, VIState, as_blackjax
from ._callable import CallbackTarget, from_callable
from ._parquet import ParquetRows
from ._predictive import posterior_predictive
from ._zarr import ZarrRows
from .numpyro._guide import NumPyroGuide, numpyro_guide
from .numpyro._model import from_numpyro
from .numpyro._space import SiteSpace
from .numpyro._svi import SoftCVILoss
from .numpyro._target import NumPyroTarget
from .pymc._model import from_pymc
from .pymc._target import PyMCTarget
from .stan._from_stan import (
    from_bridgestan,
    from_pystan,
    from_stan,
)
from .stan._target import StanTarget

__all__ = [
    "AskTellSession",
    "CallbackTarget",
    "NumPyroGuide",
    "NumPyroTarget",
    "ParquetRows",
    "PyMCTarget",
    "SiteSpace",
    "SoftCVILoss",
    "StanTarget",
    "VIAlgorithm",
    "VIState",
    "ZarrRows",
    "as_blackjax",
    "from_bridgestan",
    "from_callable",
    "from_numpyro",
    "from_pymc",
    "from_pystan",
    "from_stan",
    "numpyro",
    "numpyro_guide",
    "posterior_predictive",
    "pymc",
    "stan",
    "to_arviz",
]
