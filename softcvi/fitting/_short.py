"""Few steps for a guide that fits before it is trained."""

from softcvi._compile import host_key
from softcvi.diagnostics import THRESHOLDS
from softcvi.guides import AbstractGuide
from softcvi.objectives import AbstractObjective
from softcvi.posterior import Posterior
from softcvi.targets import AbstractTarget
from softcvi.targets._cost import affordable

# What is left to train where the weights are even: a twentieth of the usual steps, in
# which the history shows that nothing moves.
_FEW = 500
_DRAWS = 1000
# Fewer of both where a log density takes millions of operations, within a budget.
_BUDGET = 3e10
_FEWEST, _FEWEST_DRAWS = 100, 250
# Parameters that may have one weight together, in the sense of the verdict's threshold.
_PART = 100
# Other draws than those that compare start and end, and than those of the verdict.
_SEED = 20_23


def enough_steps(
    guide: AbstractGuide,
    target: AbstractTarget,
    objective: AbstractObjective,
    steps: int,
) -> tuple[int, str]:
    """How many steps a guide needs that a start has placed, and why, for people.

    With hundreds of parameters or many rows each step is dear, and a posterior that is
    normal is known before the first one: importance weights of the guide as placed are
    even, for each hundred of its parameters. Weights correct what is left.

    Args:
        guide: The guide at its start.
        target: The posterior.
        objective: What it is trained by.
        steps: Steps that were asked for.

    Returns:
        Number of steps, and a reason; empty where all of them are needed.
    """
    # All data at once can be far more than the steps would read.
    by_parts = target.draw_data(host_key(0)) is not None
    if steps <= _FEW or by_parts or not target.has_gradient:
        return steps, ""
    draws = affordable(target, _BUDGET, fewest=_FEWEST_DRAWS, most=_DRAWS)
    sample = Posterior(guide, target).importance(host_key(_SEED), draws)
    share = sample.ess / draws
    # The share of a product of independent parts is the product of theirs.
    even = THRESHOLDS.even_ess_share ** max(1.0, guide.structure.size / _PART)
    if not (sample.is_usable and share > even):
        return steps, ""
    few = affordable(
        target, _BUDGET, fewest=_FEWEST, most=_FEW, each=objective.num_evaluations
    )
    return few, f"{few} steps, as {share:.0%} of the draws carry weight before any"
