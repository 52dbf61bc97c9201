"""Starts: where the posterior is, before a guide is fitted to it."""

from softcvi.starts._explore import StartReport
from softcvi.starts._importance import Moments

__all__ = ["Moments", "StartReport"]
