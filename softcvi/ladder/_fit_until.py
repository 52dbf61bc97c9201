"""``fit_until``: a ladder of guides up to an answer that can be trusted."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from softcvi.diagnostics import Verdict
from softcvi.fitting._checks import check_target, checked_key
from softcvi.fitting._history import History
from softcvi.fitting._progress import AbstractReporter
from softcvi.fitting._result import FitResult
from softcvi.ladder._chains import ChainDraws
from softcvi.ladder._rungs import Climb, Rung
from softcvi.objectives import SoftCVI
from softcvi.posterior import ImportanceSample
from softcvi.targets import AbstractTarget
from softcvi.targets._numpy_random import numpy_generator


@dataclasses.dataclass(eq=False)
class LadderResult:
    """The answer of ``fit_until``.

    Attributes:
        result: The best fit of a guide.
        chain: Draws of the last rung, if it was needed.
        rungs: Every attempt, in order.
        trusted: Whether the last attempt is trusted.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> answer = softcvi.fit_until(jax.random.key(0), target, progress=False)
        >>> answer.trusted, len(answer.rungs)
        (True, 1)
    """

    result: FitResult
    chain: ChainDraws | None
    rungs: list[Rung]
    trusted: bool

    @property
    def posterior(self):
        """The best guide as a posterior."""
        return self.result.posterior

    @property
    def verdict(self) -> Verdict:
        """What the program thinks of the answer: of the chain, if there is one."""
        if self.chain is None:
            return self.result.verdict
        return self.chain.verdict

    @property
    def status(self) -> str:
        """How the best fit ended."""
        return self.result.status

    @property
    def message(self) -> str:
        """The same in words."""
        return self.result.message

    @property
    def history(self) -> History:
        """Curves of the best fit."""
        return self.result.history

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
    def seconds_start(self) -> float:
        """Time of the start of the best fit."""
        return self.result.seconds_start

    @property
    def seconds_compile(self) -> float:
        """Time of its compilation."""
        return self.result.seconds_compile

    @property
    def seconds_run(self) -> float:
        """Time of all attempts, without start and compilation of the best fit."""
        total = sum(rung.seconds for rung in self.rungs)
        return max(total - self.seconds_start - self.seconds_compile, 0.0)

    @property
    def importance(self) -> ImportanceSample:
        """Weighted draws of the best guide."""
        return self.result.importance

    @property
    def choices(self) -> dict[str, str]:
        """What was chosen in the best fit, and every attempt in order."""
        rungs = {
            f"rung {i}": f"{rung.name}, {rung.seconds:.1f} s: {rung.verdict}"
            for i, rung in enumerate(self.rungs, start=1)
        }
        return {**self.result.choices, **rungs}

    @property
    def draws_are(self) -> str:
        """Where the draws of ``sample`` come from."""
        return self.result.draws_are if self.chain is None else "from chains (NUTS)"

    def sample(self, key: PRNGKeyArray, n: int = 1000) -> dict[str, Array]:
        """Draws of the trusted answer: from the chain if there is one.

        Args:
            key: Random key.
            n: Number of draws.
        """
        if self.chain is None:
            return self.result.sample(key, n)
        total = len(next(iter(self.chain.draws.values())))
        rng = numpy_generator(key)
        index = rng.choice(total, n, replace=n > total)
        return {
            name: jnp.asarray(np.asarray(values)[index])
            for name, values in self.chain.draws.items()
        }

    def summary(self) -> str:
        """Each rung in a line, then the summary of the fit."""
        width = max(len(rung.name) for rung in self.rungs)
        lines = [
            f"{rung.name:<{width}} {rung.seconds:6.1f} s  {rung.verdict}"
            for rung in self.rungs
        ]
        return "\n".join([*lines, "", self.result.summary()])


def fit_until(
    key: PRNGKeyArray,
    target: AbstractTarget,
    khat: float = 0.7,
    budget: float = 600.0,
    *,
    steps: int = 10_000,
    progress: bool | AbstractReporter = True,
) -> LadderResult:
    """Climb from a simple guide to richer ones until the answer is trusted.

    The rungs: a normal, or a Student's t where the start finds heavy tails or skewness
    (with several modes, the mixture that ``fit`` chooses), trained and as started; a
    spline flow on the space whitened by it, and a deeper flow with more particles,
    unless there are more than 32 parameters or what went before was far off; and at
    last NUTS in the base space of the best guide, whose draws come with R-hat and
    effective sample size.

    Args:
        key: Random key.
        target: The posterior.
        khat: k-hat that an accepted guide must stay below; it must be trusted besides.
        budget: Seconds after which no further rung is begun.
        steps: Optimisation steps of the first rung; later ones take as many or more.
        progress: Show progress on a terminal; or a reporter.

    Returns:
        The answer with every rung, whether trusted or not.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> answer = softcvi.fit_until(
        ...     jax.random.key(0), target, steps=200, progress=False
        ... )
        >>> answer.rungs[0].verdict.startswith("trusted")
        True
    """
    key = checked_key(key)
    check_target(target, SoftCVI())
    if not 0 < khat <= 1:
        raise ValueError(f"khat: must lie in (0, 1]; got {khat}.")
    if not budget > 0:
        raise ValueError(f"budget: must be a positive number of seconds; got {budget}.")
    climb = Climb(key, target, khat, budget, steps, progress)
    for rung in (climb.simplest_guide, climb.flows, climb.chains):
        if rung():
            break
    return LadderResult(climb.best, climb.chain, climb.rungs, climb.trusted)
