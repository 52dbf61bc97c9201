"""What every rung of the ladder offers, and what it is given."""

import dataclasses
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

import equinox as eqx
from jaxtyping import Array, PRNGKeyArray

from softcvi._compile import host_fold_in
from softcvi.diagnostics import Verdict
from softcvi.diagnostics._chain_draws import ChainDraws
from softcvi.fitting import AbstractReporter, FitResult, History
from softcvi.posterior import Posterior
from softcvi.starts import StartReport, Suggestion
from softcvi.targets import AbstractTarget

INTERRUPTED = "interrupted"


class Answer(Protocol):
    """What an attempt ends with: a ``FitResult``, or anything that offers the same.

    Example:
        >>> from softcvi.ladder import Answer, Attempt
        >>> def effective_share(answer: Answer) -> float:
        ...     return answer.verdict.ess_share
    """

    status: str
    message: str
    history: History
    seconds_compile: float
    seconds_run: float

    @property
    def posterior(self) -> Posterior:
        """The guide as a posterior."""

    @property
    def verdict(self) -> Verdict:
        """Whether the draws of ``sample`` can be trusted."""

    @property
    def chains(self) -> ChainDraws | None:
        """Draws of chains with their R-hat, if they are the answer."""

    @property
    def draws_are(self) -> str:
        """Where the draws of ``sample`` come from."""

    @property
    def rank(self) -> tuple[int, float, float]:
        """How good the answer is, the best highest."""

    def sample(self, key: PRNGKeyArray, n: int = 1000) -> dict[str, Array]:
        """Draws of the answer."""

    def summary(self, max_rows: int = 20) -> str:
        """The answer in words."""


@dataclasses.dataclass(frozen=True)
class Attempt:
    """One attempt of the ladder, good or bad.

    Attributes:
        name: What was tried.
        seconds: Wall time, compilation and verdict included.
        answer: What came out; None if the attempt failed.
        accepted: Whether the ladder stops here.
        failure: Why there is no answer, in words.
        error: The exception behind it.

    Example:
        >>> from softcvi.ladder import Attempt
        >>> Attempt("chains", 0.1, failure="NumPyro is missing").verdict is None
        True
    """

    name: str
    seconds: float
    answer: Answer | None = None
    accepted: bool = False
    failure: str | None = None
    error: Exception | None = None

    @property
    def verdict(self) -> Verdict | None:
        """What the program thinks of it; None if the attempt failed."""
        return None if self.answer is None else self.answer.verdict

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it, and with it the ladder."""
        if self.answer is None:
            return self.failure == INTERRUPTED
        return self.answer.status == INTERRUPTED

    @property
    def khat(self) -> float:
        """Pareto k-hat of its weights, NaN where there are none."""
        return float("nan") if self.verdict is None else self.verdict.khat

    def __str__(self) -> str:
        outcome = f"failed: {self.failure}" if self.verdict is None else self.verdict
        return f"{self.name}  {self.seconds:.1f} s  {outcome}"


@dataclasses.dataclass
class LadderState:
    """What is known when a rung is asked, for it to read.

    Attributes:
        key: Random key of this rung.
        target: The posterior, in the coordinates that the start found best.
        report: What the start found.
        suggestions: Guides that suit it, cheapest first.
        khat: k-hat that an accepted guide must stay below.
        steps: Optimisation steps of a simple guide.
        reporter: Who is told of progress.
        ends: When the budget ends, on the clock of ``time.perf_counter``.
        checkpoint: Where fits keep their states: ``fit(checkpoint=...)`` takes it.
        attempts: Every attempt so far.

    Example:
        >>> from softcvi.ladder import AbstractRung, LadderState
        >>> class Nothing(AbstractRung):
        ...     def attempt(self, state: LadderState):
        ...         return None  # does not apply
    """

    key: PRNGKeyArray
    target: AbstractTarget
    report: StartReport
    suggestions: tuple[Suggestion, ...]
    khat: float
    steps: int
    reporter: AbstractReporter
    ends: float
    checkpoint: Any = None
    attempts: list[Attempt] = dataclasses.field(default_factory=list)

    @property
    def seconds_left(self) -> float:
        """Seconds of the budget that are left."""
        return self.ends - time.perf_counter()

    @property
    def fits(self) -> list[FitResult]:
        """The fits of guides so far."""
        answers = [attempt.answer for attempt in self.attempts]
        return [answer for answer in answers if isinstance(answer, FitResult)]

    @property
    def best_fit(self) -> FitResult | None:
        """The best guide so far."""
        return max(self.fits, key=lambda fit: fit.rank, default=None)

    def judged(self, name: str, make: Callable[[], Answer]) -> Attempt:
        """Make an answer, judge it, and measure how long both took.

        Args:
            name: What is tried.
            make: Makes the answer.
        """
        began = time.perf_counter()
        answer = make()
        if isinstance(answer, FitResult):
            answer = answer.with_infinite_of(self.fits)
        verdict = answer.verdict
        weights = verdict.evidence.weights
        is_sure = (
            weights is None or weights.khat < self.khat or verdict.has_even_weights
        )
        return Attempt(
            name, time.perf_counter() - began, answer, verdict.trusted and is_sure
        )

    def for_attempt(self, number: int) -> "LadderState":
        """The same, with the random key of the attempt with this number."""
        return dataclasses.replace(self, key=host_fold_in(self.key, number))


class AbstractRung(eqx.Module):
    """A way to an answer, tried when those before it were not good enough.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> from softcvi.ladder import AbstractRung, DEFAULT_RUNGS
        >>> class MeanField(AbstractRung):
        ...     def attempt(self, state):
        ...         guide = softcvi.guides.mean_field(state.target)
        ...         return state.judged(
        ...             "mean-field normal",
        ...             lambda: softcvi.fit(
        ...                 state.key, state.target, guide, steps=state.steps,
        ...                 progress=state.reporter,
        ...             ),
        ...         )
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> answer = softcvi.fit_until(
        ...     jax.random.key(0), target, rungs=(MeanField(), *DEFAULT_RUNGS),
        ...     steps=200, progress=False,
        ... )
        >>> answer.attempts[0].name
        'mean-field normal'
    """

    @abstractmethod
    def attempt(self, state: LadderState) -> Attempt | None:
        """Try; None where this rung does not apply.

        An exception is recorded as a failed attempt: what was reached before stays.
        """

    def further(self, attempt: Attempt) -> "AbstractRung | None":
        """What to try next on this rung if that was not enough; None for the next rung.

        Args:
            attempt: What this rung has just tried.
        """
        return None
