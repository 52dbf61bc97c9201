"""The paper's experiments, on the public interface alone."""

from softcvi_experiments._methods import METHODS, PAPER_METHODS, get_objective
from softcvi_experiments._records import Records
from softcvi_experiments._reproduce import Reproduction, reproduce_metrics
from softcvi_experiments._reproduce_draws import (
    MARGINAL_TASKS,
    SLCP_METHODS,
    reproduce_marginals,
    reproduce_slcp,
)
from softcvi_experiments._reproduce_particles import PARTICLES, reproduce_particles
from softcvi_experiments._run import run_piece
from softcvi_experiments._settings import RECIPES, Settings

__all__ = [
    "MARGINAL_TASKS",
    "METHODS",
    "PAPER_METHODS",
    "PARTICLES",
    "RECIPES",
    "SLCP_METHODS",
    "Records",
    "Reproduction",
    "Settings",
    "get_objective",
    "reproduce_marginals",
    "reproduce_metrics",
    "reproduce_particles",
    "reproduce_slcp",
    "run_piece",
]
