"""The fitted posterior: sampled, scored, corrected by importance weights and saved."""

from softcvi.posterior._importance import ImportanceSample, psis
from softcvi.posterior._posterior import Posterior, load

__all__ = ["ImportanceSample", "Posterior", "load", "psis"]
