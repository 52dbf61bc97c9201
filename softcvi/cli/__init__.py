"""The command line: ``softcvi demo``, ``fit``, ``report`` and the experiments."""

from softcvi.cli._main import main

__all__ = ["main"]
