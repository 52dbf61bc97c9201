"""Adapters: models of other packages as targets, and results in their formats.

Nothing here imports NumPyro, PyMC, Stan or ArviZ before it is used; a name whose
package is absent says which extra installs it.
"""

from softcvi.adapters._arviz import to_arviz
from softcvi.adapters._ask_tell import AskTellSession
from softcvi.adapters._blackjax import VIAlgorithm, VIState, as_blackjax
from softcvi.adapters._callable import CallbackTarget, from_callable
from softcvi.adapters._predictive import posterior_predictive
from softcvi.adapters.numpyro._guide import NumPyroGuide, numpyro_guide
from softcvi.adapters.numpyro._model import from_numpyro
from softcvi.adapters.numpyro._space import SiteSpace
from softcvi.adapters.numpyro._svi import SoftCVILoss
from softcvi.adapters.numpyro._target import NumPyroTarget
from softcvi.adapters.pymc._model import from_pymc
from softcvi.adapters.pymc._target import PyMCTarget
from softcvi.adapters.stan._from_stan import (
    from_bridgestan,
    from_pystan,
    from_stan,
)
from softcvi.adapters.stan._target import StanTarget

__all__ = [
    "AskTellSession",
    "CallbackTarget",
    "NumPyroGuide",
    "NumPyroTarget",
    "PyMCTarget",
    "SiteSpace",
    "SoftCVILoss",
    "StanTarget",
    "VIAlgorithm",
    "VIState",
    "as_blackjax",
    "from_bridgestan",
    "from_callable",
    "from_numpyro",
    "from_pymc",
    "from_pystan",
    "from_stan",
    "numpyro_guide",
    "posterior_predictive",
    "to_arviz",
]
