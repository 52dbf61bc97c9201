"""Every limit that the verdict uses, and where it comes from."""

import dataclasses

from softcvi.posterior import ImportanceSample


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
    usable_khat: float = ImportanceSample.largest_khat
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
    # A high k-hat does not count where half of the draws carry weight and chains that
    # remember this little of their start confirm means and standard deviations.
    mostly_even_ess_share: float = ImportanceSample.mostly_even_share
    forgotten: float = 0.2
    # Vehtari et al. (2021) for R-hat; Stan warns at any divergence, and one in a
    # hundred transitions is where estimates of scales were seen to be biased.
    max_rhat: float = 1.01
    max_divergent_share: float = 0.01
    # Nats: rounding by a tenth changes weights by a tenth.
    max_rounding: float = 0.1
    # Standard deviations from every place. Hundreds of them away scales and rates
    # overflow in models that are right, and a search goes so far.
    far_away: float = 100.0
    # Shares of log densities that are NaN among fresh draws: a boundary of the support
    # gives some; where half of the draws have none, the answer is about the others.
    caution_not_a_number: float = 0.01
    bad_not_a_number: float = 0.5
    # Share of lines through draws that meet NaN before the density has fallen: a NaN
    # beside the tail gives none, one beside a tenth of the mass about this many.
    caution_cut: float = 0.05
    # Shares of the log densities of a whole fit that were NaN or plus infinity.
    caution_bad_densities: float = 0.05
    bad_bad_densities: float = 0.5
    # A fit that skipped half of its steps is called failed elsewhere too.
    caution_skipped: float = 0.1
    bad_skipped: float = 0.5
    # The same for other draws, broad or redrawn ones, whose errors have been taken off:
    # a little below what counts as wrong.
    caution_other_shift: float = 0.25
    caution_other_spread: float = 1.25
    # Good and Turing's estimate of the share of the mass in places not seen: a fiftieth
    # of the mass can move a mean by 0.3 standard deviations if it is 15 away.
    caution_missing: float = 0.02
    bad_missing: float = 0.1


THRESHOLDS = Thresholds()
