"""Stan programs as targets."""

from softcvi.adapters.stan._data import read_data
from softcvi.adapters.stan._from_stan import (
    AbstractEngine,
    BridgeStan,
    Httpstan,
    from_bridgestan,
    from_pystan,
    from_stan,
)
from softcvi.adapters.stan._program import AbstractProgram
from softcvi.adapters.stan._target import StanTarget

__all__ = [
    "AbstractEngine",
    "AbstractProgram",
    "BridgeStan",
    "Httpstan",
    "StanTarget",
    "from_bridgestan",
    "from_pystan",
    "from_stan",
    "read_data",
]
