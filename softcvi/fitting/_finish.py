"""From the end of the loop to a result."""

from softcvi.fitting._drive import Outcome
from softcvi.fitting._history import History
from softcvi.fitting._loop import Run
from softcvi.fitting._result import FitResult
from softcvi.posterior import Posterior

_DEGENERATE_LABELS = 1.15


def make_result(
    outcome: Outcome, run: Run, choices: dict[str, str], seconds_start: float
) -> FitResult:
    """Put the fitted parameters back into guide and target, and read the history."""
    guide, target = run.unpack(outcome.state.params)
    history = History.from_sums(
        outcome.state.history, int(run.record_every), outcome.steps
    )
    num_particles = run.objective.num_particles
    message = outcome.message
    label_ess = history.last()["label_ess"]
    uses_labels = run.objective.uses_labels
    if uses_labels and num_particles >= 4 and label_ess < _DEGENERATE_LABELS:
        message += (
            f"; label ESS stayed at {label_ess:.2f} of {num_particles}: one particle "
            "takes all the weight: use a richer guide (low_rank, full_rank, a flow) or "
            "more particles"
        )
    return FitResult(
        posterior=Posterior(guide, target),
        status=outcome.status,
        message=message,
        history=history,
        steps=outcome.steps,
        num_particles=num_particles,
        num_bad_densities=outcome.state.num_bad,
        num_skipped_steps=outcome.state.num_skipped(outcome.steps),
        seconds_start=seconds_start,
        seconds_compile=outcome.seconds_compile,
        seconds_run=outcome.seconds_run,
        choices=choices,
        uses_labels=uses_labels,
    )
