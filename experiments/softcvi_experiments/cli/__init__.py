"""Commands that the experiments add to ``softcvi``."""

from softcvi_experiments.cli._commands import bench, references, reproduce

__all__ = ["bench", "references", "reproduce"]
