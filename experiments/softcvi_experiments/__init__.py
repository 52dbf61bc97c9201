"""The paper's experiments, on the public interface alone."""

import importlib
from typing import Any

# Loaded on demand: the study of the verdict needs none of the paper's experiments,
# nor the packages that these need.
_WHERE = {
    "MARGINAL_TASKS": "_reproduce_draws",
    "METHODS": "_methods",
    "PAPER_METHODS": "_methods",
    "PARTICLES": "_reproduce_particles",
    "RECIPES": "_settings",
    "SLCP_METHODS": "_reproduce_draws",
    "Records": "store",
    "Reproduction": "_reproduce",
    "Settings": "_settings",
    "get_objective": "_methods",
    "reproduce_marginals": "_reproduce_draws",
    "reproduce_metrics": "_reproduce",
    "reproduce_particles": "_reproduce_particles",
    "reproduce_slcp": "_reproduce_draws",
    "run_piece": "_run",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_WHERE[name]}")
    return getattr(module, name)
