"""Benchmarks: how fast, beside whom, and how cost grows."""

from softcvi_experiments.bench._compile import bench_compile
from softcvi_experiments.bench._figure import bench_figure
from softcvi_experiments.bench._growth import bench_growth
from softcvi_experiments.bench._options import Options
from softcvi_experiments.bench._page_tables import speed_tables
from softcvi_experiments.bench._peers import bench_peers
from softcvi_experiments.bench._store import redraw, speed_table

__all__ = [
    "Options",
    "bench_compile",
    "bench_figure",
    "bench_growth",
    "bench_peers",
    "redraw",
    "speed_table",
    "speed_tables",
]
