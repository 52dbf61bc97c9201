"""Stan programs as targets."""

from softcvi.adapters.stan._target import StanTarget, from_bridgestan, from_pystan

__all__ = ["StanTarget", "from_bridgestan", "from_pystan"]
