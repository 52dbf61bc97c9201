"""Simulation-based calibration: are posteriors right on average over data sets?"""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, PRNGKeyArray, PyTree

from softcvi.fitting import fit_many
from softcvi.guides import AbstractGuide, full_rank, mean_field
from softcvi.objectives import AbstractObjective
from softcvi.sweeps._sweep import raise_if_interrupted
from softcvi.targets import AbstractTarget, DensityTarget

_FULL_RANK_DIM = 100
# Ranks of a right posterior are uniform: their variance is 1 / 12, and that of their
# squared distance from the middle 1 / 180.
_VARIANCE = 1 / 12
_VARIANCE_OF_SQUARES = 1 / 180
# Standard errors beyond which a statistic counts, beside the largest of so many.
_ERRORS = 2.0
_LEVELS = (0.5, 0.9)


@dataclasses.dataclass(frozen=True)
class CalibrationRow:
    """How one scalar's posteriors lie about the values that made the data.

    Attributes:
        name: The scalar.
        bias: Mean rank minus a half, in standard deviations of a uniform rank: above
            zero if posteriors lie too low.
        spread: Spread of the ranks beside that of uniform ones: above one where
            posteriors are too narrow, below where they are too wide.
        coverage: Share of the data sets whose central intervals of 50 % and 90 % hold
            the value.
        finding: ``"calibrated"``, ``"too narrow"``, ``"too wide"`` or ``"biased"``.

    Example:
        >>> from softcvi.sweeps import CalibrationRow
        >>> CalibrationRow("mu", 0.0, 1.0, (0.5, 0.9), "calibrated").name
        'mu'
    """

    name: str
    bias: float
    spread: float
    coverage: tuple[float, float]
    finding: str


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Ranks of the values that made the data among the draws of their posteriors.

    Attributes:
        ranks: For each scalar, one rank per data set, from 0 to ``num_draws``.
        num_draws: Draws of each posterior.
        num_failed: Data sets whose fit failed; they have no ranks.

    Example:
        >>> import numpy as np
        >>> from softcvi.sweeps import Calibration
        >>> even = Calibration({"mu": np.arange(100)}, num_draws=99, num_failed=0)
        >>> even.calibrated
        True
    """

    ranks: dict[str, Int[np.ndarray, " datasets"]]
    num_draws: int
    num_failed: int

    @property
    def num_datasets(self) -> int:
        """Data sets with ranks."""
        return len(next(iter(self.ranks.values())))

    @property
    def errors(self) -> tuple[float, float]:
        """Standard errors of ``bias`` and ``spread`` of a calibrated posterior."""
        n = self.num_datasets
        return 1 / np.sqrt(n), np.sqrt(_VARIANCE_OF_SQUARES / n) / _VARIANCE

    @property
    def rows(self) -> tuple[CalibrationRow, ...]:
        """One row per scalar."""
        return tuple(self._row(name, ranks) for name, ranks in self.ranks.items())

    @property
    def calibrated(self) -> bool:
        """Whether no scalar's ranks differ from uniform ones beyond their errors."""
        return not self.num_failed and all(r.finding == "calibrated" for r in self.rows)

    def summary(self) -> str:
        """The rows as text, with the verdict above them."""
        words = "calibrated" if self.calibrated else "not calibrated"
        lines = [f"{words}: {self.num_datasets} data sets, {self.num_failed} failed"]
        width = max(len(name) for name in self.ranks)
        lines.append(f"{'':<{width}}    bias  spread   50 %   90 %")
        lines += [
            f"{row.name:<{width}} {row.bias:>7.2f} {row.spread:>7.2f} "
            f"{row.coverage[0]:>6.2f} {row.coverage[1]:>6.2f}  {row.finding}"
            for row in self.rows
        ]
        return "\n".join(lines)

    def _row(self, name: str, ranks: Int[np.ndarray, " datasets"]) -> CalibrationRow:
        places = (np.asarray(ranks) + 0.5) / (self.num_draws + 1)
        bias = float(np.mean(places) - 0.5) / np.sqrt(_VARIANCE)
        spread = float(np.mean((places - 0.5) ** 2) / _VARIANCE)
        coverage = tuple(
            float(np.mean(np.abs(places - 0.5) <= level / 2)) for level in _LEVELS
        )
        bias_error, spread_error = self.errors
        errors = _ERRORS + np.sqrt(2 * np.log(2 * len(self.ranks)))
        finding = "calibrated"
        if abs(bias) > errors * bias_error:
            finding = "biased"
        elif abs(spread - 1) > errors * spread_error:
            finding = "too narrow" if spread > 1 else "too wide"
        return CalibrationRow(name, bias, spread, (coverage[0], coverage[1]), finding)


def calibrate(
    key: PRNGKeyArray,
    simulate: Callable[[PRNGKeyArray], tuple[PyTree, PyTree]],
    target: DensityTarget,
    guide: AbstractGuide | None = None,
    *,
    num_datasets: int = 200,
    num_draws: int = 200,
    objective: AbstractObjective | None = None,
    steps: int = 5_000,
    progress: bool = True,
) -> Calibration:
    """Fit many simulated data sets, and rank the values that made them.

    If posteriors are right, the value drawn from the prior that made a data set is as
    likely to have any rank among the draws of its posterior as any other (Talts et al.,
    2018). A guide that is too narrow has too many extreme ranks.

    Args:
        key: Random key.
        simulate: JAX function of a key that draws parameters from the prior, in the
            model's coordinates, and data given them: ``(parameters, observed)``.
        target: The posterior of one data set, whose ``observed`` is replaced.
        guide: The guide to test; a full-rank normal by default, factorised above 100
            parameters.
        num_datasets: How many data sets; errors fall with their root.
        num_draws: Draws of each posterior.
        objective: ``SoftCVI()`` by default.
        steps: Optimisation steps of each fit; all run in one program.
        progress: Show a bar on a terminal.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> def simulate(key):
        ...     one, two = jax.random.split(key)
        ...     mu = jax.random.normal(one)
        ...     return mu, mu + jax.random.normal(two, (5,))
        >>> target = softcvi.DensityTarget(
        ...     lambda mu, y: -0.5 * mu**2 - 0.5 * jnp.sum((y - mu) ** 2),
        ...     jnp.zeros(()), observed=jnp.zeros(5),
        ... )
        >>> check = softcvi.calibrate(
        ...     jax.random.key(0), simulate, target, num_datasets=20, steps=200,
        ...     progress=False,
        ... )
        >>> check.calibrated
        True
    """
    if target.observed is None:
        raise ValueError(
            "target: its observed is None; pass DensityTarget(log_prob, like, "
            "observed=data) so that the data can be replaced."
        )
    for name, count in {"num_datasets": num_datasets, "num_draws": num_draws}.items():
        if count < 2:
            raise ValueError(f"{name}: at least 2; got {count}.")
    data_key, fit_key, draw_key = jax.random.split(key, 3)
    truths, observed = jax.vmap(simulate)(jax.random.split(data_key, num_datasets))
    _check_like(observed, target.observed)
    if guide is None:
        make = full_rank if target.structure.size <= _FULL_RANK_DIM else mean_field
        guide = make(target)
    results = fit_many(
        jax.random.split(fit_key, num_datasets),
        _stacked(target, observed, num_datasets),
        guide,
        objective=objective,
        steps=steps,
        batched_target=True,
        progress=progress,
        description="data sets",
    )
    raise_if_interrupted(results)
    named = jax.vmap(target.describe)(truths)
    usable = [i for i, result in enumerate(results) if result.status != "failed"]
    if not usable:
        raise ValueError("simulate: every fit failed; check target on simulated data.")
    ranks: dict[str, list[int]] = {}
    for i in usable:
        draws = results[i].sample(jax.random.fold_in(draw_key, i), num_draws)
        for name, truth in named.items():
            below = np.sum(np.asarray(draws[name]) < np.asarray(truth[i]), axis=0)
            for index in np.ndindex(below.shape):
                label = name + (f"[{','.join(map(str, index))}]" if index else "")
                ranks.setdefault(label, []).append(int(below[index]))
    stacked = {name: np.asarray(values) for name, values in ranks.items()}
    return Calibration(stacked, num_draws, len(results) - len(usable))


def _stacked(target: AbstractTarget, observed: Any, n: int) -> AbstractTarget:
    """One target per data set, as the arrays of one."""
    arrays, static = eqx.partition(target, eqx.is_array)
    repeated = jax.tree_util.tree_map(
        lambda leaf: jnp.broadcast_to(leaf, (n, *leaf.shape)), arrays
    )
    whole = eqx.combine(repeated, static)
    return eqx.tree_at(lambda t: t.observed, whole, observed)


def _check_like(observed: Any, example: Any) -> None:
    made = jax.tree_util.tree_map(lambda leaf: np.shape(leaf)[1:], observed)
    expected = jax.tree_util.tree_map(np.shape, example)
    if made != expected:
        raise ValueError(
            f"simulate: its data have shapes {made}, where target.observed has "
            f"{expected}."
        )
