"""The cost model: seconds and bytes of a step as sums of counts times coefficients."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

BLOCK = 4096
TERMS = {
    "step": "a step by itself",
    "entries": "entry of a particle, K d",
    "parameters": "parameter of the guide, p",
    "factors": "entry of a dense factor for each particle, K d^2",
    "reads": "row, n",
    "terms": "row for each particle, K n",
    "products": "entry of a row for each particle, K n d",
    "groups": "group for each particle, K J",
}
BYTES = {
    "step": "a step by itself",
    "entries": "entry of a particle, K d",
    "parameters": "parameter of the guide, p",
    "blocks": "row of a block for each particle, K min(n, 4096)",
    "data": "entry of the data, n (d + 1)",
    "groups": "group for each particle, K J",
}


@dataclasses.dataclass(frozen=True)
class Case:
    """Sizes of a step.

    Args:
        guide: ``"mean-field"``, ``"full-rank"`` or ``"hierarchical"``.
        particles: K.
        dimension: Number of parameters d of the posterior.
        rows: Rows n of the data, each with an entry for each parameter.
        groups: Groups J of a hierarchy, each with two parameters and 8 rows.

    Example:
        >>> Case("full-rank", 8, 10).parameters
        120
    """

    guide: str
    particles: int
    dimension: int
    rows: int = 0
    groups: int = 0

    @property
    def is_dense(self) -> bool:
        """Whether the guide has a factor of d^2 entries."""
        return self.guide == "full-rank"

    @property
    def parameters(self) -> int:
        """Trainable numbers of the guide."""
        dense = self.dimension**2 if self.is_dense else 0
        return 2 * self.dimension + dense

    def counts(self) -> dict[str, float]:
        """How often a step does what each coefficient is the cost of.

        Example:
            >>> Case("mean-field", 8, 10, rows=5).counts()["products"]
            400.0
        """
        k, d, n = map(float, (self.particles, self.dimension, self.rows))
        return {
            "step": 1.0,
            "entries": k * d,
            "parameters": float(self.parameters),
            "factors": k * d**2 if self.is_dense else 0.0,
            "reads": n,
            "terms": k * n,
            "products": k * n * d,
            "groups": k * self.groups,
            "blocks": k * min(n, BLOCK),
            "data": n * (d + 1),
        }


@dataclasses.dataclass(frozen=True)
class Costs:
    """Coefficients of one way, by the names of the counts.

    Attributes:
        each: Cost of one of each.
        errors: Relative errors, fitted over measured less one, in the order of the
            cases.
    """

    each: Mapping[str, float]
    errors: Sequence[float] = ()

    def of(self, case: Case, names: Sequence[str] | None = None) -> float:
        """What a step costs.

        Args:
            case: Its sizes.
            names: Parts of the cost; all by default.

        Example:
            >>> Costs({"step": 2.0, "entries": 0.5}).of(Case("mean-field", 8, 10))
            42.0
        """
        counts = case.counts()
        wanted = self.each if names is None else names
        return sum(self.each.get(name, 0.0) * counts[name] for name in wanted)


def fit_costs(
    cases: Sequence[Case], measured: Sequence[float], names: Sequence[str]
) -> Costs:
    """Non-negative least squares of relative errors.

    Args:
        cases: Sizes.
        measured: What each of them costs, positive.
        names: The counts that the cost is a sum of. Counts that are zero in all cases
            are left out.

    Example:
        >>> cases = [Case("mean-field", 2, d) for d in (1, 10, 100)]
        >>> found = fit_costs(cases, [3 + 4.0 * d for d in (1, 10, 100)], ["step",
        ...     "entries"])
        >>> {name: round(value, 6) for name, value in found.each.items()}
        {'step': 3.0, 'entries': 2.0}
    """
    from scipy.optimize import nnls

    counts = [case.counts() for case in cases]
    names = [name for name in names if any(count[name] for count in counts)]
    matrix = np.array([[count[name] for name in names] for count in counts])
    matrix = matrix / np.asarray(measured, float)[:, None]
    # Columns of one size: they differ by ten orders of magnitude.
    sizes = np.linalg.norm(matrix, axis=0)
    found, _ = nnls(matrix / sizes, np.ones(len(cases)))
    errors = (matrix / sizes) @ found - 1.0
    each = {
        name: float(value)
        for name, value in zip(names, found / sizes, strict=True)
    }  # fmt: skip
    return Costs(each, [float(error) for error in errors])
