"""Findings: what can speak against an answer, and which evidence leads to each."""

import enum

import equinox as eqx
import numpy as np

from softcvi.diagnostics._broad import BroadCheck
from softcvi.diagnostics._evidence import Evidence, SamplerEvidence, WeightEvidence
from softcvi.diagnostics._redraw import RedrawCheck
from softcvi.diagnostics._thresholds import THRESHOLDS


class Severity(enum.IntEnum):
    """How much a finding counts.

    Example:
        >>> from softcvi.diagnostics import Severity
        >>> Severity.BAD > Severity.CAUTION
        True
    """

    NOTE = 0
    CAUTION = 1
    BAD = 2


class Kind(enum.Enum):
    """What a finding is about.

    Example:
        >>> from softcvi.diagnostics import Kind
        >>> Kind.HIGH_KHAT.value
        'high k-hat'
    """

    FAILED = "failed"
    INTERRUPTED = "interrupted"
    NO_ANSWER = "no answer of the model"
    INFINITE_DENSITY = "infinite density"
    INFINITE_NEARBY = "infinite density nearby"
    NOT_A_NUMBER = "not a number"
    BAD_DENSITIES = "bad densities"
    SKIPPED_STEPS = "skipped steps"
    NO_USABLE_WEIGHT = "no usable weight"
    HIGH_KHAT = "high k-hat"
    EVEN_WEIGHTS = "even weights"
    UNCONFIRMED = "unconfirmed weights"
    CHAINS_AGREE = "chains agree"
    DOUBTFUL_KHAT = "doubtful k-hat"
    FEW_WEIGHTS = "few weights"
    FEW_EVALUATIONS = "few evaluations"
    LABEL_ESS = "label ESS"
    DRIFT = "drift"
    CORRECTION = "correction"
    CHAIN_SHIFT = "chain shift"
    CHAIN_SPREAD = "chain spread"
    ESCAPED = "escaped chains"
    PER_PARAMETER = "per parameter"
    PER_PART = "per part"
    SAMPLER_RHAT = "R-hat"
    SAMPLER_ESS = "ESS of chains"
    SAMPLER_DIVERGENCES = "divergences"
    PRECISION = "precision"
    BROAD_DRAWS = "broad draws"
    REDRAWN = "redrawn parameters"
    MISSING_MASS = "missing mass"
    IMPROPER = "improper"
    CUT = "cut by NaN"
    UNSTEADY = "another log density each time"
    MODEL_WARNING = "model warning"
    DISCRETE_UNCHECKED = "discrete values unchecked"
    NOTHING_MEASURED = "nothing measured"


class Finding(eqx.Module):
    """One thing that speaks against an answer, as numbers.

    Attributes:
        kind: What it is about.
        severity: How much it counts.
        numbers: The numbers behind it, by name.

    Example:
        >>> from softcvi.diagnostics import Evidence, judge
        >>> judge(Evidence(status="failed")).findings[0].kind.value
        'failed'
    """

    kind: Kind
    severity: Severity
    numbers: dict[str, float] = eqx.field(default_factory=dict)


def has_even_weights(weights: WeightEvidence) -> bool:
    """Whether weights are so even that the shape of their tail says nothing."""
    return weights.ess_share > THRESHOLDS.even_ess_share


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
    if evidence.has_discrete and evidence.sampler is None:
        found.append(Finding(Kind.DISCRETE_UNCHECKED, Severity.CAUTION))
    if evidence.weights is None and evidence.sampler is None and not found:
        found.append(Finding(Kind.NOTHING_MEASURED, Severity.CAUTION))
    if _confirms_the_draws(evidence):
        found = [_confirmed(f) if f.kind is Kind.HIGH_KHAT else f for f in found]
    elif evidence.chains is not None:
        found = [_doubted(f) if f.kind is Kind.EVEN_WEIGHTS else f for f in found]
    if _speaks_for_each_parameter(evidence):
        kept = [f for f in found if f.kind not in _OF_WHOLE_PARTICLES]
        if len(kept) < len(found):
            dimension = {"dimension": float(evidence.dimension or 0)}
            found = [*kept, Finding(Kind.PER_PARAMETER, Severity.NOTE, dimension)]
    if evidence.num_parts is not None:
        numbers = {"count": float(evidence.num_parts)}
        found.append(Finding(Kind.PER_PART, Severity.NOTE, numbers))
    return tuple(sorted(found, key=lambda finding: -finding.severity))


def _of_the_run(evidence: Evidence) -> list[Finding]:
    t = THRESHOLDS
    found = []
    if evidence.status == "failed":
        found.append(Finding(Kind.FAILED, Severity.BAD))
    if evidence.status == "interrupted":
        found.append(Finding(Kind.INTERRUPTED, Severity.CAUTION))
    if not evidence.model_answers:
        found.append(Finding(Kind.NO_ANSWER, Severity.BAD))
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
    of_weights = 0 if evidence.weights is None else evidence.weights.num_infinite
    num_infinite = max(evidence.num_infinite, of_weights)
    if num_infinite:
        numbers = {"count": float(num_infinite)}
        found.append(Finding(Kind.INFINITE_DENSITY, Severity.BAD, numbers))
    search = evidence.search
    if search is not None and search.nearest_infinite is not None:
        distance = search.nearest_infinite
        severity = Severity.CAUTION if distance < t.far_away else Severity.NOTE
        numbers = {"count": float(search.num_infinite), "distance": distance}
        found.append(Finding(Kind.INFINITE_NEARBY, severity, numbers))
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
    if weights.are_the_answer and not weights.ess >= t.min_ess:
        limit = {"limit": t.min_ess}
        found.append(Finding(Kind.FEW_EVALUATIONS, Severity.CAUTION, numbers | limit))
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
    """Whether chains replace weights, which are uninformative in many dimensions."""
    t = THRESHOLDS
    check = evidence.chains
    return (
        check is not None
        and (evidence.dimension or 0) > t.many_parameters
        and check.error <= t.max_chain_error
        and check.memory <= t.max_memory
    )


def _confirms_the_draws(evidence: Evidence) -> bool:
    """Whether chains that no longer depend on their start confirm the draws.

    A normal guide for a slightly skewed posterior has one large weight in thousands of
    draws, which k-hat sees; means and standard deviations are right all the same.
    """
    t = THRESHOLDS
    check, weights = evidence.chains, evidence.weights
    return (
        check is not None
        and weights is not None
        and weights.ess_share >= t.mostly_even_ess_share
        and check.error <= t.max_chain_error
        and check.memory <= t.forgotten
    )


def _confirmed(finding: Finding) -> Finding:
    return Finding(Kind.CHAINS_AGREE, Severity.NOTE, finding.numbers)


def _doubted(finding: Finding) -> Finding:
    """Even weights with a high k-hat as unconfirmed, where chains are slow, too."""
    if finding.numbers["khat"] <= THRESHOLDS.usable_khat:
        return finding
    return Finding(Kind.UNCONFIRMED, Severity.CAUTION, finding.numbers)


# Findings from weights of whole draws, which count less with many parameters.
_OF_WHOLE_PARTICLES = {
    Kind.UNCONFIRMED,
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
    found += _of_moments(Kind.BROAD_DRAWS, evidence.broad)
    found += _of_moments(Kind.REDRAWN, evidence.redrawn)
    missing = None if evidence.search is None else evidence.search.missing_mass
    if missing is not None:
        severity = _graded(missing, t.caution_missing, t.bad_missing)
        if severity is not None:
            found.append(Finding(Kind.MISSING_MASS, severity, {"share": missing}))
    if evidence.improper:
        numbers = {"count": float(len(evidence.improper))}
        found.append(Finding(Kind.IMPROPER, Severity.BAD, numbers))
    if evidence.cut is not None and not evidence.cut < t.caution_cut:
        numbers = {"share": evidence.cut}
        found.append(Finding(Kind.CUT, Severity.CAUTION, numbers))
    if not evidence.change <= t.max_rounding:
        numbers = {"nats": evidence.change}
        found.append(Finding(Kind.UNSTEADY, Severity.BAD, numbers))
    if evidence.model_warnings:
        numbers = {"count": float(len(evidence.model_warnings))}
        found.append(Finding(Kind.MODEL_WARNING, Severity.CAUTION, numbers))
    return found


def _of_moments(kind: Kind, check: BroadCheck | RedrawCheck | None) -> list[Finding]:
    """Means and standard deviations that other draws have."""
    t = THRESHOLDS
    if check is None:
        return []
    severities = (
        _graded(check.shift, t.caution_other_shift, t.bad_shift),
        _graded(_factor_off((check.spread,)), t.caution_other_spread, t.bad_spread),
    )
    worst = max((s for s in severities if s is not None), default=None)
    if worst is None:
        return []
    return [Finding(kind, worst, {"shift": check.shift, "spread": check.spread})]


def _graded(value: float, caution: float, bad: float) -> Severity | None:
    """Severity of a number that should be small; NaN is the worst."""
    if not value < bad:
        return Severity.BAD
    return None if value < caution else Severity.CAUTION
