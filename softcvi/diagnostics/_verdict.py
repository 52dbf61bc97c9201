"""The verdict: can this answer be trusted. Every threshold of the program is here."""

import dataclasses

import equinox as eqx
import numpy as np

from softcvi.diagnostics._evidence import Evidence, SamplerEvidence, WeightEvidence
from softcvi.diagnostics._findings import Finding, Kind, Severity
from softcvi.diagnostics._words import advice, reasons

_LEVELS = {
    Severity.NOTE: "trusted",
    Severity.CAUTION: "caution",
    Severity.BAD: "not trusted",
}


@dataclasses.dataclass(frozen=True)
class Thresholds:
    """Where evidence begins to count against an answer, and where that comes from.

    Example:
        >>> from softcvi.diagnostics import THRESHOLDS
        >>> THRESHOLDS.usable_khat
        0.7
    """

    # Vehtari et al. (2024), Pareto smoothed importance sampling: estimates are
    # practically useful below 0.7, and have finite variance below 0.5.
    usable_khat: float = 0.7
    good_khat: float = 0.5
    # Vehtari et al. (2021), rank-normalised R-hat: an effective sample size of 400
    # makes means and their errors reliable. The same number for weights and chains.
    min_ess: float = 400.0
    # Below a fiftieth, 4,000 draws leave fewer than 80: too few for a tail quantile.
    min_ess_share: float = 0.02
    # Above this the weights are even: the shape of the little tail that is left says
    # nothing (a normal fitted to a slightly heavier tail has a large k-hat).
    even_ess_share: float = 0.9
    # Label ESS of one plus a fiftieth of K: one label takes all the weight.
    label_ess_excess: float = 0.02
    # Nats: an ELBO that moves less at the end has settled (on the zoo of models).
    settled_drift: float = 0.2
    # Posterior standard deviations. An answer counts as wrong at 0.3 in a mean or a
    # third in a standard deviation; Monte Carlo errors of the checks are near 0.1.
    caution_correction: float = 0.25
    caution_shift: float = 0.2
    bad_shift: float = 0.4
    caution_spread: float = 1.2
    bad_spread: float = 1.5
    caution_typical_spread: float = 1.1
    # Shares of chains. Where a guide's weights have k-hat 0.7 on 64,000 draws, less
    # than 0.02 of the posterior has weights beyond the largest of them by e^2.
    caution_escaped: float = 0.01
    bad_escaped: float = 0.05
    # Above this many parameters the weights of whole particles degenerate even for
    # excellent answers (an effective share of 0.01 for the best normal of a Cox
    # process); chains then speak for each parameter, if they can resolve this much.
    many_parameters: int = 50
    max_chain_error: float = 0.25
    max_memory: float = 0.5
    # Vehtari et al. (2021) for R-hat; Stan warns at any divergence, and one in a
    # hundred transitions is where estimates of scales were seen to be biased.
    max_rhat: float = 1.01
    max_divergent_share: float = 0.01
    # Nats: rounding by a tenth changes weights by a tenth.
    max_rounding: float = 0.1
    # Nats between the evidence of places that starts ended in.
    max_disagreement: float = 1.0
    # Shares of log densities that are NaN among fresh draws: a boundary of the support
    # gives some; where half of the draws have none, the answer is about the others.
    caution_not_a_number: float = 0.01
    bad_not_a_number: float = 0.5
    # Shares of the log densities of a whole fit that were NaN or plus infinity.
    caution_bad_densities: float = 0.05
    bad_bad_densities: float = 0.5
    # A fit that skipped half of its steps is called failed elsewhere too.
    caution_skipped: float = 0.1
    bad_skipped: float = 0.5
    # Good and Turing's probability that one more start leads to a new place.
    caution_missing: float = 0.02
    bad_missing: float = 0.1


THRESHOLDS = Thresholds()


class Verdict(eqx.Module):
    """What the program thinks of its own answer.

    Attributes:
        level: ``"trusted"``, ``"caution"`` or ``"not trusted"``.
        findings: What speaks against the answer, worst first.
        evidence: What the verdict is made from.

    Example:
        >>> from softcvi.diagnostics import Evidence, WeightEvidence, judge
        >>> weights = WeightEvidence(num_draws=4000, khat=0.9, ess=100.0)
        >>> verdict = judge(Evidence(weights=weights))
        >>> verdict.trusted, verdict.findings[0].kind.value
        (False, 'high k-hat')
    """

    level: str
    findings: tuple[Finding, ...]
    evidence: Evidence

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the answer."""
        return self.level == "trusted"

    @property
    def khat(self) -> float:
        """Pareto k-hat of the importance weights; NaN where there are none."""
        weights = self.evidence.weights
        return float("nan") if weights is None else weights.khat

    @property
    def ess_share(self) -> float:
        """Effective share of the draws that the verdict is about."""
        sampler, weights = self.evidence.sampler, self.evidence.weights
        if sampler is not None:
            return sampler.ess / max(sampler.num_draws, 1)
        return float("nan") if weights is None else weights.ess_share

    @property
    def has_even_weights(self) -> bool:
        """Whether the weights are so even that k-hat says nothing."""
        weights = self.evidence.weights
        return weights is not None and has_even_weights(weights)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The findings in words; what was checked, where there are none."""
        return reasons(self.findings, self.evidence)

    @property
    def advice(self) -> tuple[str, ...]:
        """What to try next."""
        return advice(self.findings, self.evidence)

    def __str__(self) -> str:
        return f"{self.level}: " + "; ".join(self.reasons)


def has_even_weights(weights: WeightEvidence) -> bool:
    """Whether weights are so even that the shape of their tail says nothing."""
    return weights.ess_share > THRESHOLDS.even_ess_share


def judge(evidence: Evidence) -> Verdict:
    """Combine the signs that an answer is right or wrong.

    k-hat alone misleads: a guide far from the posterior can have a small one. So it is
    read together with how the run ended, whether it had settled, whether labels were
    degenerate, whether other starts agree, where short chains go, how far the posterior
    was searched and whether log densities were precise enough.

    Args:
        evidence: What is known; what was not measured does not count.

    Example:
        >>> from softcvi.diagnostics import Evidence, WeightEvidence, judge
        >>> weights = WeightEvidence(num_draws=4000, khat=0.1, ess=3900.0)
        >>> judge(Evidence(status="finished", weights=weights)).level
        'trusted'
    """
    findings = find(evidence)
    worst = max((f.severity for f in findings), default=Severity.NOTE)
    return Verdict(_LEVELS[worst], findings, evidence)


def find(evidence: Evidence) -> tuple[Finding, ...]:
    """Everything in the evidence that counts, worst first.

    Args:
        evidence: What is known.
    """
    found = [
        *_of_the_run(evidence),
        *_of_weights(evidence.weights),
        *_of_chains(evidence),
        *_of_sampler(evidence.sampler),
        *_of_search(evidence),
    ]
    if evidence.weights is None and evidence.sampler is None and not found:
        found.append(Finding(Kind.NOTHING_MEASURED, Severity.CAUTION))
    if _speaks_for_each_parameter(evidence):
        kept = [f for f in found if f.kind not in _OF_WHOLE_PARTICLES]
        if len(kept) < len(found):
            dimension = {"dimension": float(evidence.dimension or 0)}
            found = [*kept, Finding(Kind.PER_PARAMETER, Severity.NOTE, dimension)]
    return tuple(sorted(found, key=lambda finding: -finding.severity))


def _of_the_run(evidence: Evidence) -> list[Finding]:
    t = THRESHOLDS
    found = []
    if evidence.status == "failed":
        found.append(Finding(Kind.FAILED, Severity.BAD))
    if evidence.status == "interrupted":
        found.append(Finding(Kind.INTERRUPTED, Severity.CAUTION))
    if evidence.num_steps:
        share = evidence.num_skipped_steps / evidence.num_steps
        severity = _graded(share, t.caution_skipped, t.bad_skipped)
        if severity is not None:
            found.append(Finding(Kind.SKIPPED_STEPS, severity, {"share": share}))
        densities = evidence.num_steps * (evidence.num_particles or 1)
        share = evidence.num_bad_densities / densities
        severity = _graded(share, t.caution_bad_densities, t.bad_bad_densities)
        if severity is not None:
            found.append(Finding(Kind.BAD_DENSITIES, severity, {"share": share}))
    # The draws of a chain do not come from the fit that went before.
    if evidence.sampler is not None:
        return found
    k = evidence.num_particles or 8
    label_ess = evidence.label_ess if evidence.uses_labels else None
    if label_ess is not None and label_ess < 1 + t.label_ess_excess * k:
        numbers = {"label_ess": label_ess, "num_particles": float(k)}
        found.append(Finding(Kind.LABEL_ESS, Severity.BAD, numbers))
    if evidence.drift is not None and not abs(evidence.drift) < t.settled_drift:
        numbers = {"drift": evidence.drift}
        found.append(Finding(Kind.DRIFT, Severity.CAUTION, numbers))
    return found


def _of_weights(weights: WeightEvidence | None) -> list[Finding]:
    t = THRESHOLDS
    if weights is None:
        return []
    found = []
    if weights.num_infinite:
        numbers = {"count": float(weights.num_infinite)}
        found.append(Finding(Kind.INFINITE_DENSITY, Severity.BAD, numbers))
    share = weights.num_not_a_number / weights.num_draws
    severity = _graded(share, t.caution_not_a_number, t.bad_not_a_number)
    if severity is not None:
        found.append(Finding(Kind.NOT_A_NUMBER, severity, {"share": share}))
    if np.isnan(weights.khat) or weights.khat == np.inf:
        return [*found, Finding(Kind.NO_USABLE_WEIGHT, Severity.BAD)]
    numbers = {"khat": weights.khat, "ess": weights.ess, "share": weights.ess_share}
    numbers |= {"good": t.good_khat, "usable": t.usable_khat}
    if has_even_weights(weights):
        if weights.khat > t.good_khat:
            found.append(Finding(Kind.EVEN_WEIGHTS, Severity.NOTE, numbers))
    else:
        if not weights.khat <= t.usable_khat:
            found.append(Finding(Kind.HIGH_KHAT, Severity.BAD, numbers))
        elif weights.khat > t.good_khat and weights.ess < t.min_ess:
            found.append(Finding(Kind.DOUBTFUL_KHAT, Severity.CAUTION, numbers))
    if weights.ess_share < t.min_ess_share:
        found.append(Finding(Kind.FEW_WEIGHTS, Severity.BAD, numbers))
    if not weights.correction < t.caution_correction:
        numbers = {"shift": weights.correction}
        found.append(Finding(Kind.CORRECTION, Severity.CAUTION, numbers))
    return found


def _of_chains(evidence: Evidence) -> list[Finding]:
    t = THRESHOLDS
    check = evidence.chains
    if check is None:
        return []
    found = []
    severity = _graded(check.shift, t.caution_shift, t.bad_shift)
    if severity is not None:
        found.append(Finding(Kind.CHAIN_SHIFT, severity, {"shift": check.shift}))
    narrow, wide = check.spread
    severity = _graded(_factor_off(check.spread), t.caution_spread, t.bad_spread)
    typical = _factor_off((check.typical_spread,))
    if severity is None and not typical < t.caution_typical_spread:
        severity, narrow, wide = Severity.CAUTION, *[check.typical_spread] * 2
    if severity is not None:
        numbers = {"narrow": narrow, "wide": wide}
        found.append(Finding(Kind.CHAIN_SPREAD, severity, numbers))
    if check.escaped is not None:
        severity = _graded(check.escaped, t.caution_escaped, t.bad_escaped)
        if severity is not None:
            numbers = {"share": check.escaped}
            found.append(Finding(Kind.ESCAPED, severity, numbers))
    return found


def _factor_off(ratios: tuple[float, ...]) -> float:
    """The ratio furthest from one, or its inverse if that is below one."""
    return max(max(r, 1 / r if r > 0 else np.inf) for r in ratios)


def _speaks_for_each_parameter(evidence: Evidence) -> bool:
    """Whether chains stand in for weights, which say nothing in many dimensions."""
    t = THRESHOLDS
    check = evidence.chains
    return (
        check is not None
        and (evidence.dimension or 0) > t.many_parameters
        and check.error <= t.max_chain_error
        and check.memory <= t.max_memory
    )


# What whole particles say, which counts less where there are many parameters.
_OF_WHOLE_PARTICLES = {
    Kind.HIGH_KHAT,
    Kind.DOUBTFUL_KHAT,
    Kind.FEW_WEIGHTS,
    Kind.CORRECTION,
    Kind.LABEL_ESS,
    Kind.DRIFT,
}


def _of_sampler(sampler: SamplerEvidence | None) -> list[Finding]:
    t = THRESHOLDS
    if sampler is None:
        return []
    found = []
    numbers = {
        "rhat": sampler.rhat,
        "ess": sampler.ess,
        "divergent_share": sampler.divergent_share,
    }
    if not sampler.rhat < t.max_rhat:
        limit = {"limit": t.max_rhat}
        found.append(Finding(Kind.SAMPLER_RHAT, Severity.BAD, numbers | limit))
    if not sampler.ess >= t.min_ess:
        limit = {"limit": t.min_ess}
        found.append(Finding(Kind.SAMPLER_ESS, Severity.BAD, numbers | limit))
    if not sampler.divergent_share < t.max_divergent_share:
        found.append(Finding(Kind.SAMPLER_DIVERGENCES, Severity.BAD, numbers))
    return found


def _of_search(evidence: Evidence) -> list[Finding]:
    t = THRESHOLDS
    found = []
    if evidence.precision is not None and not evidence.precision <= t.max_rounding:
        numbers = {"nats": evidence.precision}
        found.append(Finding(Kind.PRECISION, Severity.BAD, numbers))
    disagreement = evidence.start_disagreement
    if disagreement is not None and not disagreement <= t.max_disagreement:
        numbers = {"nats": disagreement}
        found.append(Finding(Kind.START_DISAGREEMENT, Severity.BAD, numbers))
    missing = None if evidence.search is None else evidence.search.missing_mass
    if missing is not None:
        severity = _graded(missing, t.caution_missing, t.bad_missing)
        if severity is not None:
            found.append(Finding(Kind.MISSING_MASS, severity, {"share": missing}))
    if evidence.improper:
        numbers = {"count": float(len(evidence.improper))}
        found.append(Finding(Kind.IMPROPER, Severity.BAD, numbers))
    if evidence.model_warnings:
        numbers = {"count": float(len(evidence.model_warnings))}
        found.append(Finding(Kind.MODEL_WARNING, Severity.CAUTION, numbers))
    return found


def _graded(value: float, caution: float, bad: float) -> Severity | None:
    """Severity of a number of which less is better; NaN is the worst."""
    if not value < bad:
        return Severity.BAD
    return None if value < caution else Severity.CAUTION
