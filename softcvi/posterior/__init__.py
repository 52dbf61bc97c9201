"""The fitted posterior: sampled, scored, corrected by importance weights and saved."""

from softcvi.posterior._importance import ImportanceSample, psis
from softcvi.posterior._load import load
from softcvi.posterior._posterior import Posterior

__all__ = ["ImportanceSample", "Posterior", "load", "psis"]
