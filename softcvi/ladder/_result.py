"""What ``fit_until`` returns."""

import dataclasses

from jaxtyping import Array, PRNGKeyArray

from softcvi.diagnostics import Verdict
from softcvi.diagnostics._chain_draws import ChainDraws
from softcvi.fitting import FitResult, History
from softcvi.ladder._base import INTERRUPTED, Answer, Attempt
from softcvi.posterior import ImportanceSample, Posterior
from softcvi.starts import StartReport


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
    def chains(self) -> ChainDraws | None:
        """Draws of chains, if they are the answer."""
        return self.answer.chains

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
        """How the attempt of the answer ended; ``"interrupted"`` if the ladder was."""
        if self.attempts[-1].interrupted:
            return INTERRUPTED
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

    @property
    def steps(self) -> int:
        """Steps of the best fit."""
        return self.result.steps

    @property
    def num_particles(self) -> int:
        """K of the best fit."""
        return self.result.num_particles

    @property
    def num_bad_densities(self) -> int:
        """Log densities of the best fit that were NaN or plus infinity."""
        return self.result.num_bad_densities

    @property
    def num_skipped_steps(self) -> int:
        """Steps of the best fit without a usable gradient."""
        return self.result.num_skipped_steps

    @property
    def importance(self) -> ImportanceSample:
        """Weighted draws of the best guide."""
        return self.result.importance

    @property
    def choices(self) -> dict[str, str]:
        """What was chosen in the best fit, and every attempt in order."""
        attempts = {f"rung {i}": str(a) for i, a in enumerate(self.attempts, start=1)}
        return {**self.result.choices, **attempts}

    @property
    def draws_are(self) -> str:
        """Where the draws of ``sample`` come from."""
        return self.answer.draws_are

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


def _answer(attempt: Attempt) -> Answer:
    assert attempt.answer is not None  # the caller has asked
    return attempt.answer
