"""How far an approximation is from a zoo model's reference."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from softcvi_experiments.zoo._model import ZooModel
from softcvi_experiments.zoo._reference import Reference


@dataclass(frozen=True)
class Score:
    """Errors of an approximation, in units of the reference.

    Attributes:
        mean_error: Largest error of a posterior mean in posterior sds.
        mean_error_at: The parameter where it occurs.
        sd_ratio_min: Smallest ratio of an sd to the reference's.
        sd_ratio_max: Largest ratio.
        mode_error: Largest error of a mode's weight; None without known modes.

    Example:
        >>> score = Score(0.1, "mu", 0.9, 1.1, None)
        >>> score.good
        True
    """

    mean_error: float
    mean_error_at: str
    sd_ratio_min: float
    sd_ratio_max: float
    mode_error: float | None

    @property
    def good(self) -> bool:
        """Means within 0.15 sd and sds within 15 per cent."""
        return (
            self.mean_error <= 0.15
            and self.sd_ratio_min >= 0.85
            and self.sd_ratio_max <= 1.15
        )


def score(
    model: ZooModel, reference: Reference, draws: Mapping[str, np.ndarray]
) -> Score:
    """Compare draws with the reference's moments, parameter by parameter.

    Parameters that cannot vary (the zeros of a Cholesky factor) are left out; a
    draw that is not finite makes the error infinite.

    Args:
        model: The zoo model.
        reference: Its stored reference.
        draws: Draws by latent site, in model coordinates, draws on the first axis.

    Example:
        >>> from softcvi_experiments import zoo
        >>> model, reference = zoo.get("banana"), zoo.load_reference("banana")
        >>> bool(score(model, reference, reference.draws).mean_error < 0.2)
        True
    """
    missing = set(reference.mean) - set(draws)
    if missing:
        raise ValueError(f"draws lack the sites {sorted(missing)} of {model.name!r}.")
    values = model.scored({site: draws[site] for site in reference.mean})
    errors, ratios, labels = [], [], []
    for site, value in values.items():
        sd = np.atleast_1d(reference.sd[site]).ravel()
        value = value.reshape(len(value), -1)
        varies = sd > 1e-12
        shift = np.abs(value.mean(0) - np.ravel(reference.mean[site]))
        errors.append(shift[varies] / sd[varies])
        ratios.append(value.std(0)[varies] / sd[varies])
        single = np.ndim(reference.sd[site]) == 0
        labels += [site if single else f"{site}[{i}]" for i in np.nonzero(varies)[0]]
    error, ratio = np.concatenate(errors), np.concatenate(ratios)
    error = np.where(np.isfinite(error), error, np.inf)
    ratio = np.where(np.isfinite(ratio), ratio, np.inf)
    mode_error = None
    if model.modes is not None:
        gap = model.modes.shares(draws) - model.modes.weights
        mode_error = float(np.abs(gap).max())
    worst = int(np.argmax(error))
    return Score(
        mean_error=float(error[worst]),
        mean_error_at=labels[worst],
        sd_ratio_min=float(ratio.min()),
        sd_ratio_max=float(ratio.max()),
        mode_error=mode_error,
    )
