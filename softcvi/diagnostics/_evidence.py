"""What is known about an answer, as typed numbers: the input of the verdict."""

import dataclasses

import equinox as eqx
import numpy as np
from jaxtyping import Float

from softcvi.diagnostics._broad import BroadCheck, BroadMoments
from softcvi.diagnostics._improper import ImproperDirection
from softcvi.diagnostics._redraw import RedrawCheck
from softcvi.posterior import ImportanceSample

# Larger values are cut off here: a heavy tail may have no mean.
_LARGEST_STANDARDISED = 5.0


class WeightEvidence(eqx.Module):
    """What fresh importance weights say about an answer.

    Attributes:
        num_draws: Draws of the guide.
        khat: Pareto k-hat of the weights; infinity where no weight is usable.
        ess: Effective sample size of the weights.
        correction: How far the weights move a mean, in posterior standard deviations.
        num_not_a_number: Draws whose log density is NaN.
        num_infinite: Draws whose log density is plus infinity.
        log_evidence: Estimate of the log marginal likelihood.
        are_the_answer: Whether there are no draws but these, so that their number
            limits how precise the answer is.

    Example:
        >>> from softcvi.diagnostics import WeightEvidence
        >>> WeightEvidence(num_draws=4000, khat=0.2, ess=3000.0).ess_share
        0.75
    """

    num_draws: int
    khat: float
    ess: float
    correction: float = 0.0
    num_not_a_number: int = 0
    num_infinite: int = 0
    log_evidence: float | None = None
    are_the_answer: bool = False

    @property
    def ess_share(self) -> float:
        """Effective share of the draws."""
        return self.ess / self.num_draws

    @classmethod
    def of(cls, sample: ImportanceSample) -> "WeightEvidence":
        """Read the weights of a sample.

        Args:
            sample: Weighted draws that were used for nothing before.
        """
        log_p = np.asarray(sample.log_p, np.float64)
        return cls(
            num_draws=len(sample.log_q),
            khat=float(sample.khat),
            ess=float(sample.ess),
            correction=_largest_correction(sample),
            num_not_a_number=int(np.sum(np.isnan(log_p))),
            num_infinite=int(np.sum(np.isposinf(log_p))),
            log_evidence=float(sample.log_evidence),
        )


class ChainCheck(eqx.Module):
    """Where short chains went that started at draws of the answer.

    Attributes:
        shift: Largest difference between a mean of the chains and that of the answer,
            in standard deviations of the chains, beyond Monte Carlo errors. The answer
            is the guide's draws, weighted where weights can be used.
        spread: Smallest and largest ratio of the answer's standard deviation to that
            of the chains, beyond Monte Carlo errors.
        acceptance: Mean acceptance probability of the later transitions.
        typical_spread: The same ratio, averaged over parameters.
        memory: How much of their start the chains remember, for the parameter that
            they forget most slowly: 0 for nothing, 1 for everything.
        error: Largest Monte Carlo error of a mean or standard deviation, multiplicity
            included, in standard deviations: what the check can resolve.
        escaped: Share of the chains that ended where the posterior is as dense as at
            the answer's draws, but the guide has next to no density; None where the
            weights say nothing.

    Example:
        >>> from softcvi.diagnostics import ChainCheck
        >>> check = ChainCheck(shift=0.05, spread=(0.9, 1.1), acceptance=0.8)
        >>> check.shift < 0.25
        True
    """

    shift: float
    spread: tuple[float, float]
    acceptance: float
    typical_spread: float = 1.0
    memory: float = 0.0
    error: float = 0.0
    escaped: float | None = None


class SamplerEvidence(eqx.Module):
    """Convergence diagnostics of the draws of a Markov chain.

    Attributes:
        rhat: Largest split R-hat over all scalars.
        ess: Smallest effective sample size over all scalars.
        divergences: Number of divergent transitions.
        num_draws: Draws of all chains together.

    Example:
        >>> from softcvi.diagnostics import Evidence, SamplerEvidence, judge
        >>> chains = SamplerEvidence(rhat=1.2, ess=80.0, divergences=3, num_draws=4000)
        >>> judge(Evidence(sampler=chains)).level
        'not trusted'
    """

    rhat: float
    ess: float
    divergences: int
    num_draws: int

    @property
    def divergent_share(self) -> float:
        """Share of the transitions that diverged."""
        return self.divergences / max(self.num_draws, 1)


class SearchEvidence(eqx.Module):
    """How far a start has searched, and what such a search can miss.

    Attributes:
        num_starts: Points that a search for modes began from.
        num_places: Separate places that they led to.
        num_seen_once: Places that only one start led to.
        scales: Standard deviations about the origin that starts were drawn with.
        smallest_feature: Standard deviation, as a share of the widest place's, of the
            narrowest place with half of the mass that the look around the places
            would have noticed with 95 % probability; None if there was none.
        missing_mass: Good and Turing's estimate of the share of the mass in places not
            seen yet, which is that of the places seen once, or the share of the mass
            beyond the reach of all places, if that is more.
        broad: Moments of the posterior by the draws of that look; None if there was
            none.
        narrowest_apart: The same as ``smallest_feature`` for a place outside of all
            others, which lines from the known places would have met; None if no width
            is sure to be met, or no line was followed.
        num_infinite: Points of the search whose log density was plus infinity.
        nearest_infinite: Distance of the nearest of them from a place, in standard
            deviations of the parameter that is furthest out; None if there are none.

    Example:
        >>> import softcvi
        >>> found = softcvi.diagnostics.SearchEvidence(64, 2, 0, (1.0, 10.0), 0.02, 0.0)
        >>> found.missing_mass
        0.0
    """

    num_starts: int
    num_places: int
    num_seen_once: int
    scales: tuple[float, ...]
    smallest_feature: float | None
    missing_mass: float | None
    broad: BroadMoments | None = None
    narrowest_apart: float | None = None
    num_infinite: int = 0
    nearest_infinite: float | None = None

    def with_infinite(self, count: int, nearest: float | None) -> "SearchEvidence":
        """The same with further points whose log density was plus infinity.

        Args:
            count: How many there are.
            nearest: Distance of the nearest of them; None if there are none.
        """
        known = [d for d in (self.nearest_infinite, nearest) if d is not None]
        return dataclasses.replace(
            self,
            num_infinite=self.num_infinite + count,
            nearest_infinite=min(known, default=None),
        )

    def compared_with_broad(
        self, vectors: Float[np.ndarray, "n d"], weights: np.ndarray | None = None
    ) -> BroadCheck | None:
        """How an answer differs from the broad draws; None if there were none.

        Args:
            vectors: Draws of the answer in the fitting space.
            weights: Their weights; equal ones by default.
        """
        if self.broad is None:
            return None
        answer = BroadMoments.of(vectors, weights, beside=self.broad)
        return self.broad.compared(answer)


class Evidence(eqx.Module):
    """Everything the verdict may read; what was not measured is None.

    Attributes:
        status: How the fit ended: ``"finished"``, ``"stopped"``, ``"interrupted"`` or
            ``"failed"``.
        num_steps: Steps of the fit.
        num_particles: Particles per step.
        num_bad_densities: Log densities during the fit that were NaN or plus infinity.
        num_skipped_steps: Steps of the fit without a usable gradient.
        num_infinite: Draws of the guide and points of the fit whose log density is plus
            infinity, also where the answer is the draws of chains: these never enter
            such a place.
        label_ess: Mean label ESS of the last part of the run.
        uses_labels: Whether the objective ranks particles by labels; label ESS says
            nothing about one that does not, such as the ELBO.
        has_gradient: Whether the model has a gradient.
        has_discrete: Whether some parameters are discrete: neither chains nor a search
            then check that no other values were missed.
        dimension: Number of scalar parameters.
        num_parts: Number of independent parts that were judged by themselves; all of
            this is then about the one that can be trusted least.
        drift: Change of the ELBO over the last part of the run, in nats.
        weights: Fresh importance weights.
        chains: Short chains from the draws.
        sampler: R-hat and the like, where the answer is the draws of a Markov chain.
        precision: Size of the rounding errors in log densities, in nats.
        search: How thoroughly other modes were looked for.
        broad: How the answer differs from the broad draws of the search.
        redrawn: How the answer changes when parameters are drawn anew, a few at a time;
            None where something else speaks against it already, or where that takes too
            many evaluations.
        improper: Directions along which the posterior has infinite mass.
        cut: Share of the lines through draws that meet a NaN before the density has
            fallen; None where no NaN was met anywhere.
        change: How far the log density differs from itself when it is traced again, in
            nats.
        model_warnings: Warnings of the model's own library, such as a missing plate.
        model_answers: Whether the model came back, in time, when it was asked.

    Example:
        >>> from softcvi.diagnostics import Evidence, judge
        >>> judge(Evidence(status="failed")).level
        'not trusted'
    """

    status: str | None = None
    num_steps: int | None = None
    num_particles: int | None = None
    num_bad_densities: int = 0
    num_skipped_steps: int = 0
    num_infinite: int = 0
    label_ess: float | None = None
    uses_labels: bool = True
    has_gradient: bool | None = None
    has_discrete: bool = False
    dimension: int | None = None
    num_parts: int | None = None
    drift: float | None = None
    weights: WeightEvidence | None = None
    chains: ChainCheck | None = None
    sampler: SamplerEvidence | None = None
    precision: float | None = None
    search: SearchEvidence | None = None
    broad: BroadCheck | None = None
    redrawn: RedrawCheck | None = None
    improper: tuple[ImproperDirection, ...] = ()
    cut: float | None = None
    change: float = 0.0
    model_warnings: tuple[str, ...] = ()
    model_answers: bool = True


def _largest_correction(sample: ImportanceSample) -> float:
    """How far the weights move a mean, in weighted standard deviations."""
    weights = np.exp(sample.log_weights)
    largest = 0.0
    for values in sample.draws.values():
        values = np.asarray(values, np.float64).reshape(weights.size, -1)
        if not np.all(np.isfinite(values)):
            continue
        mean = weights @ values
        sd = np.sqrt(weights @ (values - mean) ** 2)
        # Constants, such as the diagonal of a correlation matrix, vary by rounding
        # only.
        sd = np.where(sd > 1e-6 * np.abs(mean), sd, np.inf)
        standardised = np.clip(
            (values - mean) / sd, -_LARGEST_STANDARDISED, _LARGEST_STANDARDISED
        )
        shift = np.abs(standardised.mean(axis=0))
        largest = max(largest, float(np.max(shift, initial=0.0)))
    return largest


def settled_drift(elbo: np.ndarray, share: float = 0.2) -> float | None:
    """Change of the ELBO between the halves of the last part of a run, beyond noise.

    Example:
        >>> import numpy as np
        >>> from softcvi.diagnostics import settled_drift
        >>> settled_drift(np.zeros(100))
        0.0
        >>> settled_drift(np.arange(100.0))
        10.0
    """
    tail = elbo[-max(8, int(share * elbo.size)) :]
    tail = tail[np.isfinite(tail)]
    if tail.size < 8:
        return None
    first, second = tail[: tail.size // 2], tail[tail.size // 2 :]
    change = float(second.mean() - first.mean())
    noise = float(np.sqrt(first.var() / first.size + second.var() / second.size))
    return 0.0 if abs(change) < 3 * noise else change
