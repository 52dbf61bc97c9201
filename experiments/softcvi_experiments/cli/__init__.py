"""Commands that the experiments add to ``softcvi``."""

from softcvi_experiments.cli._bench import add_bench_parser
from softcvi_experiments.cli._references import add_references_parser
from softcvi_experiments.cli._reproduce import add_reproduce_parser

__all__ = ["add_bench_parser", "add_references_parser", "add_reproduce_parser"]
