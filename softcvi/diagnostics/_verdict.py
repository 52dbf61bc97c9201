"""The verdict: can this posterior be trusted, in words and for which reasons."""

import equinox as eqx
import numpy as np

from softcvi.posterior import ImportanceSample

GOOD_KHAT = 0.5
_SETTLED_DRIFT = 0.2
_MIN_ESS_SHARE = 0.02
_MIN_ESS = 400
_EVEN_WEIGHTS = 0.9
_CAUTION_SHIFT = 0.25
_BAD_SHIFT = 0.4
_WRONG_SPREAD = 1.35


class Verdict(eqx.Module):
    """What the program thinks of its own answer.

    Attributes:
        level: ``"trusted"``, ``"caution"`` or ``"not trusted"``.
        reasons: Why, each a sentence.
        khat: Pareto k-hat of the importance weights.
        ess_share: Effective share of the importance weights.
        evidence: Numbers behind further reasons, by name.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
        >>> sample = posterior.importance(jax.random.key(0), 1000)
        >>> softcvi.diagnostics.assess(sample, label_ess=1.0).trusted
        False
    """

    level: str
    reasons: tuple[str, ...]
    khat: float
    ess_share: float
    evidence: dict[str, float]

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the answer."""
        return self.level == "trusted"

    @property
    def has_even_weights(self) -> bool:
        """Whether the weights are so even that k-hat says nothing."""
        return self.ess_share > _EVEN_WEIGHTS

    def __str__(self) -> str:
        return f"{self.level}: " + "; ".join(self.reasons)


def assess(
    sample: ImportanceSample,
    *,
    label_ess: float | None = None,
    num_particles: int = 8,
    drift: float | None = None,
    chain_shift: float | None = None,
    chain_spread: tuple[float, float] | None = None,
    start_disagreement: float | None = None,
) -> Verdict:
    """Combine the signs that an answer is right or wrong.

    k-hat alone misleads: a guide far from the posterior can have a small one. So it is
    read together with whether the run had settled, whether labels were degenerate,
    whether other starts agree, and whether short chains drift away.

    Args:
        sample: Weighted draws of the posterior.
        label_ess: Mean label ESS of the last part of the run.
        num_particles: K, to judge label ESS by.
        drift: Change of the ELBO over the last part of the run, in nats.
        chain_shift: How far short chains started at resampled draws moved a mean, in
            posterior standard deviations.
        chain_spread: Range of the guide's standard deviations over the chains'.
        start_disagreement: Largest difference of evidence between starts, in nats, that
            ended in different places.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
        >>> sample = posterior.importance(jax.random.key(0), 1000)
        >>> softcvi.diagnostics.assess(sample).level
        'trusted'
    """
    bad: list[str] = []
    doubtful: list[str] = []
    share = sample.ess / len(sample.log_q)
    # Where nearly all draws carry the same weight, the shape of the little tail that is
    # left says nothing: k-hat is large for a normal fitted to a slightly heavier tail.
    tail_matters = share <= _EVEN_WEIGHTS
    usable = sample.largest_khat
    if tail_matters and not sample.khat <= usable:
        bad.append(
            f"k-hat {sample.khat:.2f} is above {usable}: the guide misses part of "
            "the posterior"
        )
    elif tail_matters and sample.khat > GOOD_KHAT and sample.ess < _MIN_ESS:
        doubtful.append(
            f"k-hat {sample.khat:.2f} is between {GOOD_KHAT} and {usable}, with an "
            f"effective sample size of {sample.ess:.0f}"
        )
    if share < _MIN_ESS_SHARE:
        bad.append(f"only {share:.1%} of the draws carry weight")
    if label_ess is not None and label_ess < 1 + 0.02 * num_particles:
        bad.append(
            f"label ESS {label_ess:.2f} of {num_particles}: one label takes all the "
            "weight; use a richer guide or the ELBO"
        )
    if drift is not None and not abs(drift) < _SETTLED_DRIFT:
        doubtful.append(
            f"the ELBO still moved by {drift:.2f} nats at the end of the run"
        )
    correction = _largest_correction(sample)
    if not correction < _CAUTION_SHIFT:
        doubtful.append(
            f"importance weights move a mean by {correction:.2f} standard deviations"
        )
    if chain_shift is not None and not chain_shift < _BAD_SHIFT:
        bad.append(
            f"short chains from the draws move a mean by {chain_shift:.1f} standard "
            "deviations"
        )
    elif chain_shift is not None and not chain_shift < _CAUTION_SHIFT:
        doubtful.append(f"short chains move a mean by {chain_shift:.2f} sd")
    if chain_spread is not None:
        narrow, wide = chain_spread
        if narrow < 1 / _WRONG_SPREAD or wide > _WRONG_SPREAD:
            doubtful.append(
                f"standard deviations are {narrow:.2f} to {wide:.2f} times those of "
                "short chains"
            )
    if start_disagreement is not None and start_disagreement > 1.0:
        bad.append(
            f"starts ended in different places, {start_disagreement:.1f} nats apart"
        )
    numbers = {
        "label_ess": label_ess,
        "drift": drift,
        "chain_shift": chain_shift,
        "largest_correction": correction,
        "start_disagreement": start_disagreement,
    }
    level = "not trusted" if bad else "caution" if doubtful else "trusted"
    reasons = tuple(bad + doubtful) or (_nothing_against(sample.khat, share),)
    return Verdict(
        level=level,
        reasons=reasons,
        khat=float(sample.khat),
        ess_share=float(share),
        evidence={k: float(v) for k, v in numbers.items() if v is not None},
    )


def _nothing_against(khat: float, share: float) -> str:
    weight = f"{share:.0%} of the draws carry weight"
    if share > _EVEN_WEIGHTS and khat > GOOD_KHAT:
        return f"{weight}, so evenly that k-hat ({khat:.2f}) says nothing"
    return f"k-hat {khat:.2f}, {weight}"


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
        # Constants, such as the diagonal of a correlation matrix, have only rounding.
        sd = np.where(sd > 1e-6 * np.abs(mean), sd, np.inf)
        # A heavy tail has no mean to compare; its middle is compared instead.
        shift = np.abs(np.clip((values - mean) / sd, -5, 5).mean(axis=0))
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
