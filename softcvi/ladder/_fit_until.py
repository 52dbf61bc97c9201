"""``fit_until``: a ladder of guides and chains up to an answer that can be trusted."""

import dataclasses
import time

import jax
from jaxtyping import Array, PRNGKeyArray

from softcvi.diagnostics import Verdict
from softcvi.fitting import AbstractReporter, FitResult, History, as_reporter
from softcvi.fitting._checks import check_count, check_target, checked_key
from softcvi.ladder._base import AbstractRung, Answer, Attempt, LadderState
from softcvi.ladder._chains import ChainDraws, ChainResult, Chains
from softcvi.ladder._flow import Flow
from softcvi.ladder._normal import AsPlaced, Simple
from softcvi.objectives import SoftCVI
from softcvi.posterior import Posterior
from softcvi.starts import Explore, InBestSpace, StartReport, suggest
from softcvi.targets import AbstractTarget

DEFAULT_RUNGS: tuple[AbstractRung, ...] = (
    Simple(),
    AsPlaced(),
    Flow(),
    Flow("deeper spline flow", layers=8, width=64, particles=32, factor=2),
    Chains(),
)


@dataclasses.dataclass(eq=False)
class LadderResult:
    """The answer of ``fit_until``; it offers what a ``FitResult`` does.

    Attributes:
        attempts: Every attempt, in order.
        start: What the start found about the posterior.
        seconds_start: Time of the start.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> answer = softcvi.fit_until(jax.random.key(0), target, progress=False)
        >>> answer.trusted, len(answer.attempts)
        (True, 1)
    """

    attempts: list[Attempt]
    start: StartReport
    seconds_start: float

    @property
    def best(self) -> Attempt:
        """The attempt that the answer is from: the accepted one, or the best."""
        usable = [a for a in self.attempts if a.answer is not None]
        return max(usable, key=lambda a: (a.accepted, _answer(a).rank))

    @property
    def answer(self) -> Answer:
        """What that attempt ended with."""
        return _answer(self.best)

    @property
    def trusted(self) -> bool:
        """Whether the answer was accepted."""
        return self.best.accepted

    @property
    def chain(self) -> ChainDraws | None:
        """The chains' draws, if they are the answer."""
        answer = self.answer
        return answer.chain if isinstance(answer, ChainResult) else None

    @property
    def result(self) -> FitResult:
        """The best fit of a guide."""
        if not self._fits:
            raise ValueError("rungs: none of those that were given fits a guide.")
        return max(self._fits, key=lambda fit: fit.rank)

    @property
    def _fits(self) -> list[FitResult]:
        answers = [attempt.answer for attempt in self.attempts]
        return [answer for answer in answers if isinstance(answer, FitResult)]

    @property
    def verdict(self) -> Verdict:
        """What the program thinks of the draws that ``sample`` gives."""
        return self.answer.verdict

    @property
    def posterior(self) -> Posterior:
        """The best guide as a posterior."""
        return self.result.posterior if self._fits else self.answer.posterior

    @property
    def status(self) -> str:
        """How the attempt of the answer ended."""
        return self.answer.status

    @property
    def message(self) -> str:
        """What happened, in words."""
        return f"{self.best.name}: {self.answer.message}"

    @property
    def history(self) -> History:
        """History of the answer's guide; empty for chains."""
        return self.answer.history

    @property
    def seconds_compile(self) -> float:
        """Time of compilation (and warm-up of chains), over all attempts."""
        return sum(a.answer.seconds_compile for a in self.attempts if a.answer)

    @property
    def seconds_run(self) -> float:
        """Time of training and chains, over all attempts."""
        return sum(a.answer.seconds_run for a in self.attempts if a.answer)

    def sample(self, key: PRNGKeyArray, n: int = 1000) -> dict[str, Array]:
        """Draws of the answer, the ones that the verdict is about.

        Args:
            key: Random key.
            n: Number of draws.
        """
        return self.answer.sample(key, n)

    def summary(self, max_rows: int = 20) -> str:
        """Each attempt in a line, then the summary of the answer.

        Args:
            max_rows: Parameters to list.
        """
        width = max(len(attempt.name) for attempt in self.attempts)
        lines = [f"start {self.seconds_start:.1f} s: {self.start.description}"]
        for attempt in self.attempts:
            verdict = attempt.verdict
            outcome = f"failed: {attempt.failure}" if verdict is None else str(verdict)
            lines.append(f"{attempt.name:<{width}} {attempt.seconds:6.1f} s  {outcome}")
        lines += ["", f"answer     {self.best.name}", self.answer.summary(max_rows)]
        return "\n".join(lines)


def fit_until(
    key: PRNGKeyArray,
    target: AbstractTarget,
    khat: float = 0.7,
    budget: float = 600.0,
    *,
    steps: int = 10_000,
    rungs: tuple[AbstractRung, ...] = DEFAULT_RUNGS,
    progress: bool | AbstractReporter = True,
) -> LadderResult:
    """Climb from a simple guide to richer ones until the answer is trusted.

    ``fit`` stops after the guides that the start suggests; ``fit_until`` goes on to
    deeper flows and Markov chains until an answer is trusted or the budget is spent.

    The rungs: a normal, or a Student's t where the start finds heavy tails or skewness
    (with several modes a mixture), trained and as placed; a spline flow on the space
    whitened by it, and a deeper flow with more particles, unless there are more than 32
    parameters or what went before was far off; and at last NUTS in the whitened space,
    as long as there is time. The answer is the first that is accepted, or the best. A
    rung that fails (a missing package, an exception, no memory) is recorded and does
    not lose what the others have reached.

    Args:
        key: Random key.
        target: The posterior.
        khat: k-hat that an accepted guide must stay below; it must be trusted besides.
        budget: Seconds after which no further rung is begun.
        steps: Optimisation steps of the first rung; later ones take as many or more.
        rungs: What to try, in order; see ``softcvi.ladder.AbstractRung``.
        progress: Show progress on a terminal; or a reporter.

    Returns:
        The answer with every attempt, whether trusted or not.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> answer = softcvi.fit_until(
        ...     jax.random.key(0), target, steps=200, progress=False
        ... )
        >>> answer.attempts[0].verdict.trusted
        True
    """
    key = checked_key(key)
    check_count("steps", steps)
    check_target(target, SoftCVI())
    if not 0 < khat <= 1:
        raise ValueError(f"khat: must lie in (0, 1]; got {khat}.")
    if not budget > 0:
        raise ValueError(f"budget: must be a positive number of seconds; got {budget}.")
    if not rungs:
        raise ValueError("rungs: give at least one, e.g. softcvi.ladder.DEFAULT_RUNGS.")
    began = time.perf_counter()
    start_key, choice_key, climb_key = jax.random.split(key, 3)
    report = InBestSpace(Explore()).find(start_key, target)
    state = LadderState(
        key=climb_key,
        target=report.target,
        report=report,
        suggestions=suggest(choice_key, report),
        khat=khat,
        steps=steps,
        reporter=as_reporter(progress),
        ends=began + budget,
    )
    result = LadderResult(state.attempts, report, time.perf_counter() - began)
    _climb(rungs, state)
    if all(attempt.answer is None for attempt in state.attempts):
        raise _nothing_reached(state.attempts)
    return result


def _climb(rungs: tuple[AbstractRung, ...], state: LadderState) -> None:
    for first in rungs:
        rung: AbstractRung | None = first
        while rung is not None:
            if state.attempts and state.seconds_left <= 0:
                return
            attempt = _try(rung, state.for_attempt(len(state.attempts)))
            if attempt is None:
                break
            state.attempts.append(attempt)
            is_stopped = attempt.answer and attempt.answer.status == "interrupted"
            if attempt.accepted or is_stopped:
                return
            rung = None if attempt.answer is None else rung.further(attempt)


def _try(rung: AbstractRung, state: LadderState) -> Attempt | None:
    began = time.perf_counter()
    try:
        return rung.attempt(state)
    except Exception as error:
        # Whatever it is: earlier answers must not be lost to it.
        lines = str(error).strip().splitlines()
        words = f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
        seconds = time.perf_counter() - began
        name = type(rung).__name__
        return Attempt(name, seconds, failure=words, error=error)


def _answer(attempt: Attempt) -> Answer:
    assert attempt.answer is not None  # the caller has asked
    return attempt.answer


def _nothing_reached(attempts: list[Attempt]) -> Exception:
    for attempt in attempts:
        if attempt.error is not None:
            return attempt.error
    return ValueError(
        "rungs: none of them applies to this target; give softcvi.ladder.DEFAULT_RUNGS."
    )
