"""A fit that returns what users of ``pm.fit`` expect."""

import dataclasses
from typing import Any

import jax
import numpy as np

from softcvi.adapters._arviz import to_arviz
from softcvi.adapters._extras import require
from softcvi.adapters.pymc._model import from_pymc
from softcvi.adapters.pymc._trace import as_trace
from softcvi.diagnostics import Verdict
from softcvi.fitting import FitResult
from softcvi.fitting import fit as fit_target


@dataclasses.dataclass(eq=False)
class Approximation:
    """A fitted PyMC model: draws as a PyMC trace, and the losses.

    Attributes:
        result: The fit itself, with ``posterior``, ``verdict`` and ``summary()``.
        seed: Seed of the draws that are taken without one.

    Example:
        >>> import numpy as np, pymc as pm
        >>> from softcvi.adapters import pymc
        >>> with pm.Model() as model:
        ...     mu = pm.Normal("mu", 0, 5)
        ...     _ = pm.Normal("y", mu, 1, observed=np.ones(3))
        >>> approximation = pymc.fit(300, model=model, progressbar=False)
        >>> approximation.hist.ndim
        1
    """

    result: FitResult
    seed: int

    @property
    def hist(self) -> np.ndarray:
        """Losses as ``pm.fit`` keeps them: the negative ELBO at the recorded steps."""
        return -np.asarray(self.result.history.elbo)

    @property
    def verdict(self) -> Verdict:
        """Can the answer be trusted, and why."""
        return self.result.verdict

    def sample(self, draws: int = 500, *, random_seed: int | None = None) -> Any:
        """Draws of the answer as the trace that PyMC's own functions take.

        An ``InferenceData`` with PyMC 5, a ``DataTree`` with PyMC 6, with the groups
        ``posterior``, ``sample_stats``, ``log_likelihood``, ``observed_data`` and
        ``constant_data``.

        Args:
            draws: Number of draws.
            random_seed: Seed; the same one gives the same draws.
        """
        key = jax.random.key(self.seed + 1 if random_seed is None else random_seed)
        tree = to_arviz(
            self.result.posterior,
            key,
            draws,
            corrected=self.result.has_usable_weights,
            predictive=False,
        )
        return as_trace({name: group.to_dataset() for name, group in tree.items()})


def fit(
    n: int = 10_000,
    *,
    model: Any = None,
    random_seed: int | None = None,
    progressbar: bool = True,
    **options: Any,
) -> Approximation:
    """Fit a PyMC model by SoftCVI in the manner of ``pm.fit``.

    Args:
        n: Optimisation steps.
        model: A ``pymc.Model`` or ``bambi.Model``; the model context by default.
        random_seed: Seed.
        progressbar: Show a bar on a terminal.
        **options: Further arguments of ``softcvi.fit``, such as ``guide`` or
            ``objective``.

    Example:
        >>> import numpy as np, pymc as pm
        >>> from softcvi.adapters import pymc
        >>> with pm.Model() as model:
        ...     mu = pm.Normal("mu", 0, 5)
        ...     _ = pm.Normal("y", mu, 1, observed=np.array([1.0, 2.0, 3.0]))
        >>> approximation = pymc.fit(500, model=model, random_seed=1, progressbar=False)
        >>> trace = approximation.sample(1000)
        >>> bool(abs(trace.posterior["mu"].mean() - 1.97) < 0.1)
        True
    """
    if model is None:
        model = require("pymc", "pymc").modelcontext(None)
    seed = int(np.random.default_rng(random_seed).integers(2**31 - 2))
    result = fit_target(
        jax.random.key(seed), from_pymc(model), steps=n, progress=progressbar, **options
    )
    return Approximation(result, seed)
