"""The verdict: can this answer be trusted, and why, in words.

Sentences are made here alone; no code reads a sentence.
"""

from collections.abc import Callable

import equinox as eqx

from softcvi.diagnostics._evidence import Evidence, SearchEvidence
from softcvi.diagnostics._find import Finding, Kind, Severity, find, has_even_weights

_LEVELS = {
    Severity.NOTE: "trusted",
    Severity.CAUTION: "caution",
    Severity.BAD: "not trusted",
}
# Properties of the model, which are the same for every answer.
_OF_THE_MODEL = {
    Kind.INFINITE_NEARBY,
    Kind.PRECISION,
    Kind.IMPROPER,
    Kind.CUT,
    Kind.UNSTEADY,
    Kind.MODEL_WARNING,
    Kind.DISCRETE_UNCHECKED,
}


class Verdict(eqx.Module):
    """How far an answer can be trusted, and why.

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
        # No weight is of use then, nor are chains.
        if Kind.INFINITE_DENSITY in against:
            return True
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
        """The findings in words, or what was checked; and how far modes were sought."""
        return _reasons(self.findings, self.evidence)

    @property
    def advice(self) -> tuple[str, ...]:
        """What to try next."""
        return _advice(self.findings, self.evidence)

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


_REASONS: dict[Kind, Callable[[dict[str, float]], str]] = {
    Kind.FAILED: lambda n: "the fit failed",
    Kind.INTERRUPTED: lambda n: "the fit was interrupted before its end",
    Kind.NO_ANSWER: lambda n: (
        "the model failed, or did not come back in time, when the answer was checked"
    ),
    Kind.INFINITE_DENSITY: lambda n: (
        f"the log density is plus infinity at {n['count']:.0f} of the points of the "
        "fit and of the draws"
    ),
    Kind.INFINITE_NEARBY: lambda n: (
        f"the log density is plus infinity at {n['count']:.0f} points of the search, "
        f"the nearest {n['distance']:.2g} standard deviations away"
    ),
    Kind.NOT_A_NUMBER: lambda n: (
        f"the log density is not a number (NaN) at {n['share']:.1%} of the draws"
    ),
    Kind.BAD_DENSITIES: lambda n: (
        f"{n['share']:.1%} of the fit's log densities were NaN or plus infinity"
    ),
    Kind.SKIPPED_STEPS: lambda n: (
        f"{n['share']:.0%} of the steps had no usable gradient and were skipped"
    ),
    Kind.NO_USABLE_WEIGHT: lambda n: "not a single importance weight is usable",
    Kind.HIGH_KHAT: lambda n: (
        f"k-hat {n['khat']:.2f} is above {n['usable']}: the guide misses part of the "
        "posterior"
    ),
    Kind.EVEN_WEIGHTS: lambda n: "weights are so even that k-hat says nothing",
    Kind.UNCONFIRMED: lambda n: (
        f"k-hat {n['khat']:.2f} is above {n['usable']}, and short chains are too "
        "slow to confirm the draws"
    ),
    Kind.CHAINS_AGREE: lambda n: (
        f"k-hat {n['khat']:.2f} is above {n['usable']}, but most draws carry weight "
        "and short chains confirm means and standard deviations"
    ),
    Kind.DOUBTFUL_KHAT: lambda n: (
        f"k-hat {n['khat']:.2f} is between {n['good']} and {n['usable']}, with an "
        f"effective sample size of {n['ess']:.0f}"
    ),
    Kind.FEW_WEIGHTS: lambda n: f"only {n['share']:.1%} of the draws carry weight",
    Kind.FEW_EVALUATIONS: lambda n: (
        f"the evaluations have an effective sample size of {n['ess']:.0f}, below "
        f"{n['limit']:.0f}"
    ),
    Kind.LABEL_ESS: lambda n: (
        f"label ESS {n['label_ess']:.2f} of {n['num_particles']:.0f}: one label takes "
        "all the weight"
    ),
    Kind.DRIFT: lambda n: (
        f"the ELBO still moved by {n['drift']:.2f} nats at the end of the run"
    ),
    Kind.CORRECTION: lambda n: (
        f"importance weights move a mean by {n['shift']:.2f} standard deviations"
    ),
    Kind.CHAIN_SHIFT: lambda n: (
        f"short chains from the draws move a mean by {n['shift']:.2g} standard "
        "deviations"
    ),
    Kind.CHAIN_SPREAD: lambda n: (
        f"standard deviations are {n['narrow']:.2f} to {n['wide']:.2f} times those of "
        "short chains"
    ),
    Kind.ESCAPED: lambda n: (
        f"{n['share']:.1%} of short chains end where the posterior is as dense as at "
        "the draws, but the guide has no density"
    ),
    Kind.PER_PARAMETER: lambda n: (
        f"with {n['dimension']:.0f} parameters this is about the mean and standard "
        "deviation of each, which short chains confirm; weights of whole draws say "
        "nothing"
    ),
    Kind.PER_PART: lambda n: (
        f"each of {n['count']:.0f} independent parts was judged by itself, and this is "
        "about the one that can be trusted least"
    ),
    Kind.SAMPLER_RHAT: lambda n: (
        f"R-hat {n['rhat']:.3f} is not below {n['limit']}: the chains disagree"
    ),
    Kind.SAMPLER_ESS: lambda n: (
        f"effective sample size {n['ess']:.0f} of the chains is below {n['limit']:.0f}"
    ),
    Kind.SAMPLER_DIVERGENCES: lambda n: (
        f"{n['divergent_share']:.1%} of the transitions diverged"
    ),
    Kind.PRECISION: lambda n: f"rounding changes log densities by {n['nats']:.2g} nats",
    Kind.BROAD_DRAWS: lambda n: (
        f"draws from further out move a mean by {n['shift']:.2f} standard deviations, "
        f"and a standard deviation is {n['spread']:.2f} times theirs"
    ),
    Kind.REDRAWN: lambda n: (
        f"parameters drawn anew, one or two at a time, move a mean by {n['shift']:.2f} "
        f"standard deviations, and a standard deviation is {n['spread']:.2f} times "
        "theirs"
    ),
    Kind.MISSING_MASS: lambda n: (
        f"about {n['share']:.1%} of the mass is in places that were not seen"
    ),
    Kind.CUT: lambda n: (
        f"the log density becomes NaN next to {n['share']:.0%} of the draws, where it "
        "has not fallen, and NaN is taken for no mass"
    ),
    Kind.UNSTEADY: lambda n: (
        f"the log density changes by {n['nats']:.2g} nats when it is traced again: it "
        "depends on something besides its argument, such as random numbers or the time"
    ),
    Kind.DISCRETE_UNCHECKED: lambda n: (
        "other values of the discrete parameters were not looked for"
    ),
    Kind.NOTHING_MEASURED: lambda n: "neither weights nor chains could be checked",
}


def _reasons(findings: tuple[Finding, ...], evidence: Evidence) -> tuple[str, ...]:
    """Findings as sentences, or what was checked; and how far modes were sought."""
    words: list[str] = []
    if all(finding.severity is Severity.NOTE for finding in findings):
        words.append(_what_was_checked(evidence))
    for finding in findings:
        if finding.kind is Kind.MODEL_WARNING:
            words += [f"the model warns: {text}" for text in evidence.model_warnings]
        elif finding.kind is Kind.IMPROPER:
            names = ", ".join(f"'{d.name}'" for d in evidence.improper)
            words.append(f"the posterior is improper: it has no finite mass in {names}")
        else:
            words.append(_REASONS[finding.kind](finding.numbers))
    if evidence.search is not None and evidence.search.num_starts:
        words.append(_how_far_was_looked(evidence.search))
    return tuple(words)


def _what_was_checked(evidence: Evidence) -> str:
    sampler, weights = evidence.sampler, evidence.weights
    if sampler is not None:
        words = f"R-hat {sampler.rhat:.3f}, effective sample size {sampler.ess:.0f}"
        if sampler.divergences:
            words += f", {sampler.divergent_share:.1%} of the transitions diverged"
        return words
    if weights is None:
        return "nothing speaks against it"
    return (
        f"k-hat {weights.khat:.2f}, {weights.ess_share:.0%} of the draws carry weight"
    )


def _how_far_was_looked(search: SearchEvidence) -> str:
    places = "1 place" if search.num_places == 1 else f"{search.num_places} places"
    words = f"{search.num_starts} starts"
    if search.scales:
        words += f" at scales up to {max(search.scales):g}"
    words += f" led to {places}"
    if search.missing_mass is not None:
        words += f", about {search.missing_mass:.1%} of the mass is elsewhere"
    if search.narrowest_apart is None:
        return words
    apart = f"{search.narrowest_apart:.1g}"
    return f"{words}, others down to {apart} of the widest would be noticed"


def _advice(findings: tuple[Finding, ...], evidence: Evidence) -> tuple[str, ...]:
    """What to try next; never what is already in use or cannot be used."""
    kinds = {finding.kind for finding in findings}
    tips = [words for kind, words in _REMEDIES.items() if kind in kinds]
    if kinds & {Kind.LABEL_ESS}:
        tips.append(_label_remedy(evidence))
    # Several findings share a remedy.
    return tuple(dict.fromkeys(tips))


_RICHER = "Let softcvi.fit_until try richer guides and chains."
_MODEL = "Check the model where parameters are extreme: its log density must be finite."
_REMEDIES: dict[Kind, str] = {
    Kind.FAILED: "Read the message of the fit; it names the remedy.",
    Kind.INTERRUPTED: "Run it again from its checkpoint to go on.",
    Kind.NO_ANSWER: "Find out where the model fails or hangs, or give it more time.",
    Kind.INFINITE_DENSITY: _MODEL,
    Kind.INFINITE_NEARBY: _MODEL,
    Kind.NOT_A_NUMBER: _MODEL,
    Kind.BAD_DENSITIES: _MODEL,
    Kind.SKIPPED_STEPS: _MODEL,
    Kind.NO_USABLE_WEIGHT: _MODEL,
    Kind.HIGH_KHAT: _RICHER,
    Kind.DOUBTFUL_KHAT: _RICHER,
    Kind.UNCONFIRMED: _RICHER,
    Kind.FEW_WEIGHTS: _RICHER,
    Kind.FEW_EVALUATIONS: "Ask for more points.",
    Kind.CHAIN_SHIFT: _RICHER,
    Kind.CHAIN_SPREAD: _RICHER,
    Kind.ESCAPED: _RICHER,
    Kind.DRIFT: "Give it more steps.",
    Kind.CORRECTION: "Use the corrected draws: result.sample(key, n).",
    Kind.SAMPLER_RHAT: "Run longer chains, or write the model in other coordinates.",
    Kind.SAMPLER_ESS: "Run longer chains, or write the model in other coordinates.",
    Kind.SAMPLER_DIVERGENCES: "Write the model in other coordinates (non-centred).",
    Kind.PRECISION: (
        "Subtract a constant from the log density, measure parameters from a point "
        "near the posterior in units of its size, sum the likelihood with "
        "softcvi.targets.DataTarget, or use double precision: "
        'jax.config.update("jax_enable_x64", True).'
    ),
    Kind.BROAD_DRAWS: _RICHER,
    Kind.REDRAWN: _RICHER,
    Kind.MISSING_MASS: "Search with more starts, or use a guide with several modes.",
    Kind.IMPROPER: "Give the parameters it names a proper prior.",
    Kind.CUT: (
        "Return minus infinity where the support ends, and mend the model where it "
        "fails inside of it."
    ),
    Kind.UNSTEADY: (
        "Draw random numbers, and read files and clocks, before the model is made, and "
        "pass what came out as data; mini-batches need a target for them, such as "
        "softcvi.targets.DataTarget."
    ),
    Kind.DISCRETE_UNCHECKED: (
        "Repeat the fit with other keys and compare, or sum the discrete parameters "
        "out of the model."
    ),
    Kind.MODEL_WARNING: "Mend what the model's own library warns about.",
}


def _label_remedy(evidence: Evidence) -> str:
    remedies = ["a richer guide", "more particles"]
    if evidence.uses_labels and evidence.has_gradient:
        remedies.append("objective=softcvi.ELBO()")
    return f"Use {', '.join(remedies[:-1])} or {remedies[-1]}."
