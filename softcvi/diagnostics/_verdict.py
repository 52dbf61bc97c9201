"""The verdict: can this answer be trusted."""

import equinox as eqx

from softcvi.diagnostics._evidence import Evidence
from softcvi.diagnostics._find import Finding, Kind, Severity, find, has_even_weights
from softcvi.diagnostics._words import advice, reasons

_LEVELS = {
    Severity.NOTE: "trusted",
    Severity.CAUTION: "caution",
    Severity.BAD: "not trusted",
}


# Properties of the model, which are the same for every answer.
_OF_THE_MODEL = {
    Kind.PRECISION,
    Kind.IMPROPER,
    Kind.MODEL_WARNING,
    Kind.DISCRETE_UNCHECKED,
}


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
    def is_about_model(self) -> bool:
        """Whether only the model speaks against the answer: no other guide helps."""
        against = [f.kind for f in self.findings if f.severity > Severity.NOTE]
        return bool(against) and _OF_THE_MODEL.issuperset(against)

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
