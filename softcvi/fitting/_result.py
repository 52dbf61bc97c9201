"""What a fit returns: the result, its history, and its table in text."""

import copy
import dataclasses
import functools
import math
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi._compile import host_key
from softcvi.diagnostics import (
    BroadCheck,
    Evidence,
    SearchEvidence,
    Verdict,
    examine,
    fresh_importance,
    judge,
    settled_drift,
    summarise,
)
from softcvi.diagnostics._chain_draws import ChainDraws
from softcvi.diagnostics._examine import prepare_examination
from softcvi.diagnostics._short_chains import vectors_of
from softcvi.fitting._by_parts import PartsAnswer
from softcvi.fitting._compare import missed_mass, quality_of, with_redrawn
from softcvi.fitting._history import History
from softcvi.fitting._interrupt import Abandoned, CallbackFailure, callback_failures
from softcvi.fitting._unanswered import in_time, without_density
from softcvi.posterior import ImportanceSample, Posterior
from softcvi.starts import StartReport
from softcvi.targets._cost import affordable

# The summary lists trained model parameters up to this size, and counts larger ones.
_FEW_NUMBERS = 8
CHECK_DRAWS = 4000
_CHECK_SEED = 20_25
# Above this the variance of the weights and their mean are infinite.
_LARGEST_RANKED_KHAT = 1.0
# Operations that weights of draws for the user may take beyond one weight per draw.
_BUDGET = 3e11
# Draws of the guide to choose each corrected draw from, and numbers to keep for that.
_PROPOSALS_PER_DRAW, _MOST_NUMBERS = (4, 32), 100_000_000
_LEVELS = {"not trusted": 0, "caution": 1, "trusted": 2}


class FitError(RuntimeError):
    """A fit that failed; ``result`` holds what was reached before.

    Example:
        >>> import softcvi
        >>> issubclass(softcvi.FitError, RuntimeError)
        True
    """

    def __init__(self, message: str, result: "FitResult"):
        super().__init__(message)
        self.result = result


@dataclasses.dataclass(eq=False)
class FitResult:
    """The fitted posterior, and how it came about.

    Attributes:
        posterior: The fitted posterior.
        status: ``"finished"``, ``"stopped"`` (by a rule), ``"interrupted"`` (Ctrl-C) or
            ``"failed"``.
        message: What happened, and the remedy if something is wrong.
        history: Excess, label ESS and ELBO by step.
        steps: Steps done.
        num_particles: K.
        num_bad_densities: Log densities that were NaN or plus infinity.
        num_skipped_steps: Steps without a usable gradient.
        seconds_start: Time of the start before the loop.
        seconds_compile: Time of compilation.
        seconds_run: Time of the loop.
        choices: What the program chose and tried, and why, by name; for people.
        uses_labels: Whether the objective ranks particles by labels.
        start: What the start found about the posterior, all modes included; None if
            there was none.
        error: The exception of a failed run.
        chains: Draws of chains that began at those of the guide and are the answer
            instead of these; None where the guide is the answer.
        parts: Answers of the independent parts of the posterior, each fitted and judged
            by itself; None where it was fitted as a whole.
        num_infinite_densities: Log densities that were plus infinity, in the fit and at
            the draws that compare its end with its start.
        model_answers: Whether the model came back from its last call; nothing is asked
            of one that did not.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> result = softcvi.fit(jax.random.key(0), target, steps=100, progress=False)
        >>> result.status, result.verdict.level
        ('finished', 'trusted')
    """

    posterior: Posterior
    status: str
    message: str
    history: History
    steps: int
    num_particles: int
    num_bad_densities: int
    num_skipped_steps: int
    seconds_start: float
    seconds_compile: float
    seconds_run: float
    choices: dict[str, str] = dataclasses.field(default_factory=dict)
    uses_labels: bool = True
    start: StartReport | None = None
    error: Exception | None = None
    chains: ChainDraws | None = None
    parts: PartsAnswer | None = None
    num_infinite_densities: int = 0
    model_answers: bool = True

    def with_facts(self, **facts: Any) -> "FitResult":
        """The same answer, verdict included, with other times or words."""
        new = copy.copy(self)
        vars(new).update(facts)
        return new

    def with_infinite_of(self, others: "Iterable[FitResult]") -> "FitResult":
        """The same answer, if the log density was plus infinity for other guides.

        Args:
            others: Other answers about the same posterior.
        """
        met = max((other.evidence.num_infinite for other in others), default=0)
        if met <= self.evidence.num_infinite:
            return self
        evidence = dataclasses.replace(self.evidence, num_infinite=met)
        return self.with_facts(evidence=evidence, verdict=judge(evidence))

    @functools.cached_property
    def importance(self) -> ImportanceSample:
        """Fresh weighted draws behind the verdict and the summary."""
        sample = self._weighed
        if sample is None:
            key = host_key(_CHECK_SEED)
            return without_density(key, self.posterior, CHECK_DRAWS)
        if self.parts is None or self.parts.log_evidence is None:
            return sample
        # Weights of whole particles give a worse one.
        return dataclasses.replace(sample, log_evidence=self.parts.log_evidence)

    @functools.cached_property
    def _weighed(self) -> ImportanceSample | None:
        """Draws and their weights; None if the model raises or does not return."""
        key = host_key(_CHECK_SEED)
        try:
            with callback_failures():
                return in_time(lambda: fresh_importance(key, self.posterior), self)
        except CallbackFailure:
            return None
        except Abandoned:
            self.model_answers = False
            return None

    @functools.cached_property
    def verdict(self) -> Verdict:
        """Can the answer be trusted, and why."""
        return judge(self.evidence)

    @functools.cached_property
    def evidence(self) -> Evidence:
        """What the verdict is made from."""
        if self.parts is not None:
            found = self.parts.evidence
            met = found.num_infinite + self.num_infinite_densities
            return dataclasses.replace(found, num_infinite=met)
        sample = None
        if self.has_weights and self.model_answers:
            prepare_examination(self.posterior)
            # Here, and not on another thread that may keep what is cached to itself.
            sample = self.importance
        try:
            with callback_failures():
                return in_time(lambda: self._examined(sample), self)
        except (Abandoned, CallbackFailure):
            size = self.posterior.guide.structure.size
            return self._of_the_run(Evidence(dimension=size, model_answers=False))

    def _examined(self, sample: ImportanceSample | None) -> Evidence:
        """Evidence of fresh draws, and of the run."""
        key, bad = host_key(_CHECK_SEED), self.num_bad_densities
        found = examine(key, self.posterior, sample, bad)
        evidence = self._of_the_run(found)
        target = self.posterior.target
        if sample is None or target is None:
            return evidence
        weights = self.weighted_draws[1]
        weights = None if weights is None else np.exp(weights)
        vectors = vectors_of(sample)
        broad = self.compared_with_broad(vectors, weights)
        evidence = dataclasses.replace(evidence, broad=broad)
        return with_redrawn(evidence, target, vectors, weights)

    def _of_the_run(self, found: Evidence) -> Evidence:
        """Evidence with how the fit went, and how far its start has searched."""
        bad = self.num_bad_densities
        return dataclasses.replace(
            found,
            status=self.status,
            num_steps=self.steps,
            num_particles=self.num_particles,
            num_bad_densities=bad,
            num_infinite=found.num_infinite + self.num_infinite_densities,
            num_skipped_steps=self.num_skipped_steps,
            label_ess=self.history.last()["label_ess"],
            uses_labels=self.uses_labels,
            drift=settled_drift(self.history.elbo),
            search=self._search(),
        )

    def compared_with_broad(
        self, vectors: Float[np.ndarray, "n d"], weights: np.ndarray | None = None
    ) -> BroadCheck | None:
        """How draws differ from the broad ones of the start.

        Args:
            vectors: Draws in the fitting space.
            weights: Their weights; equal ones by default.
        """
        search = None if self.start is None else self.start.search
        return None if search is None else search.compared_with_broad(vectors, weights)

    def _search(self) -> SearchEvidence | None:
        """Evidence of the search, with the mass of modes that the answer leaves out."""
        found = None if self.start is None else self.start.search
        if self.start is None or found is None or not self.has_weights:
            return found
        missed = missed_mass(self.start.modes, self.importance)
        missing = max(found.missing_mass or 0.0, missed)
        if missing == 0.0:
            return found
        return dataclasses.replace(found, missing_mass=missing)

    @property
    def has_weights(self) -> bool:
        """Whether there is one posterior to draw from, and its model to weigh draws."""
        target = self.posterior.target
        return target is not None and not target.amortised

    @property
    def has_usable_weights(self) -> bool:
        """Whether importance weights correct the guide rather than add noise."""
        return self.has_weights and self.importance.is_usable

    def sample(self, key: PRNGKeyArray, n: int = 1000) -> dict[str, Array]:
        """Draws of the answer: those of the guide, corrected where weights can do it.

        Where no guide is trusted chains may have corrected them: ``draws_are``.

        Args:
            key: Random key.
            n: Number of draws.
        """
        target = self.posterior.target
        if self.parts is not None:
            return self.parts.sample(key, n)
        if self.chains is not None:
            return self.chains.sample(key, n)
        if self.has_usable_weights and target is not None:
            most = n * self._proposals_per_draw(n)
            proposals = affordable(target, _BUDGET, fewest=n, most=most)
            return self.posterior.resample(key, n, proposals=proposals)
        return self.posterior.sample(key, n)

    def _proposals_per_draw(self, n: int) -> int:
        """Enough that most draws are distinct, as far as memory allows."""
        leaves = jax.tree_util.tree_leaves(self.importance.draws)
        size = sum(leaf.size for leaf in leaves) / len(self.importance.log_q)
        share = self.importance.ess / len(self.importance.log_q)
        fewest, most = _PROPOSALS_PER_DRAW
        room = max(fewest, _MOST_NUMBERS / (n * max(size, 1.0)))
        return math.ceil(np.clip(1 / share, fewest, min(most, room)))

    @property
    def rank(self) -> tuple[int, float, float]:
        """Key to compare answers about one posterior; larger is better.

        The verdict first, then the effective number of weighted draws where weights
        have a finite mean, then the ELBO.
        """
        ess = self.importance.ess if self.khat <= _LARGEST_RANKED_KHAT else 1.0
        elbo = quality_of(self.importance).elbo
        return _LEVELS[self.verdict.level], ess, elbo

    @property
    def draws_are(self) -> str:
        """Where the draws of ``sample`` come from."""
        if self.parts is not None:
            return "of each independent part by itself"
        if self.chains is not None:
            return "from chains that began at draws of the guide"
        if self.has_usable_weights:
            return "corrected by importance weights"
        return "the guide's own"

    @property
    def weighted_draws(self) -> tuple[dict[str, Array], np.ndarray | None]:
        """The draws that estimates are made from, and log weights; None if equal."""
        if self.parts is not None:
            return self.parts.draws, None
        if self.chains is not None:
            return self.chains.draws, None
        weights = self.importance.log_weights if self.has_usable_weights else None
        return self.importance.draws, weights

    @property
    def khat(self) -> float:
        """Pareto k-hat of the importance weights."""
        return self.importance.khat

    def summary(self, max_rows: int = 20) -> str:
        """Verdict, estimates, label ESS and timings as text.

        Args:
            max_rows: Parameters to list.
        """
        last, target = self.history.last(), self.posterior.target
        offset = 0.0 if target is None else target.log_offset
        lines = [
            f"verdict    {self.verdict}",
            f"status     {self.status}: {self.message}",
            f"label ESS  {last['label_ess']:.2f} of {self.num_particles}, "
            f"excess {last['excess']:.3g}, ELBO {last['elbo'] + offset:.3f}"
            + self._evidence_words(),
            f"time       start {self.seconds_start:.1f} s, compilation "
            f"{self.seconds_compile:.1f} s, {self.steps} steps "
            f"{self.seconds_run:.1f} s",
        ]
        lines += [f"{name:<10} {reason}" for name, reason in self.choices.items()]
        if self.num_bad_densities or self.num_skipped_steps:
            lines.append(
                f"warnings   {self.num_bad_densities} bad log densities, "
                f"{self.num_skipped_steps} skipped steps"
            )
        lines += self._trained_words()
        if not self.has_weights:
            lines.append(
                "estimates  none: each datum has a posterior of its own; draw with "
                "result.posterior.sample(key, n, condition=datum)"
            )
            return "\n".join(lines)
        lines.append(f"estimates  {self.draws_are}")
        rows = summarise(*self.weighted_draws)
        return "\n".join([*lines, "", *as_table(rows, max_rows)])

    def _trained_words(self) -> list[str]:
        """Parameters of the model that were trained, as the model sees them."""
        target = self.posterior.target
        trained = {} if target is None else target.model_parameters()
        words = []
        for name, value in trained.items():
            leaves = jax.tree_util.tree_leaves(value)
            count = sum(int(np.size(leaf)) for leaf in leaves)
            shown = f"{count} numbers"
            if count <= _FEW_NUMBERS and len(leaves) == 1:
                numbers = np.ravel(np.asarray(leaves[0]))
                shown = ", ".join(f"{number:.4g}" for number in numbers)
            words.append(f"trained    {name}: {shown}")
        return words

    def _evidence_words(self) -> str:
        if not self.has_weights or not self.model_answers:
            return ""
        return f", log evidence {self.importance.log_evidence:.3f}"


def as_table(rows: list[dict[str, float | str]], max_rows: int = 20) -> list[str]:
    """Rows of ``softcvi.diagnostics.summarise`` as lines of text.

    Args:
        rows: One per scalar.
        max_rows: Scalars to list; the others are counted.

    Example:
        >>> import numpy as np, softcvi
        >>> rows = softcvi.diagnostics.summarise({"x": np.array([0.0, 2.0])})
        >>> softcvi.fitting.as_table(rows)[1].split()[:2]
        ['x', '1']
    """
    width = max((len(str(row["name"])) for row in rows[:max_rows]), default=0)
    columns = ("mean", "sd", "q5", "median", "q95")
    lines = [" " * width + "".join(f"{c:>11}" for c in columns)]
    for row in rows[:max_rows]:
        numbers = "".join(f"{row[c]:>11.4g}" for c in columns)
        lines.append(f"{row['name']:<{width}}{numbers}")
    if len(rows) > max_rows:
        lines.append(f"... and {len(rows) - max_rows} more")
    return lines
