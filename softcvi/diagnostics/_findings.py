"""What can speak against an answer: kinds of findings, each with its numbers."""

import enum

import equinox as eqx


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
    INFINITE_DENSITY = "infinite density"
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
    SAMPLER_RHAT = "R-hat"
    SAMPLER_ESS = "ESS of chains"
    SAMPLER_DIVERGENCES = "divergences"
    PRECISION = "precision"
    START_DISAGREEMENT = "start disagreement"
    BROAD_DRAWS = "broad draws"
    MISSING_MASS = "missing mass"
    IMPROPER = "improper"
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
