"""Names of the package, loaded when they are first used."""

from ._methods import (
    METHODS,
    PAPER_METHODS,
    get_objective,
)
from ._reproduce import (
    Reproduction,
    reproduce_metrics,
)
from ._reproduce_draws import (
    MARGINAL_TASKS,
    SLCP_METHODS,
    reproduce_marginals,
    reproduce_slcp,
)
from ._reproduce_particles import (
    PARTICLES,
    reproduce_particles,
)
from ._run import (
    run_piece,
)
from ._settings import (
    RECIPES,
    Settings,
)

__all__ = [
    "MARGINAL_TASKS",
    "METHODS",
    "PAPER_METHODS",
    "PARTICLES",
    "RECIPES",
    "SLCP_METHODS",
    "Reproduction",
    "Settings",
    "get_objective",
    "reproduce_marginals",
    "reproduce_metrics",
    "reproduce_particles",
    "reproduce_slcp",
    "run_piece",
]
