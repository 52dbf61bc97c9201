"""A fit that returns what users of ``pm.fit`` expect."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from softcvi.adapters._arviz import to_arviz
from softcvi.adapters._extras import require
from softcvi.adapters.pymc._model import from_pymc
from softcvi.adapters.pymc._target import PyMCTarget
from softcvi.adapters.pymc._trace import as_trace
from softcvi.diagnostics import Verdict
from softcvi.fitting import FitResult
from softcvi.fitting import fit as fit_target
from softcvi.guides import full_rank, mean_field

_METHODS = {"advi": mean_field, "fullrank_advi": full_rank}
# Options of pm.fit, with what does the same here.
_ELSEWHERE = {
    "callbacks": "stopping= takes a rule, progress= a reporter",
    "obj_n_mc": "objective=softcvi.SoftCVI(num_particles) has the number of draws",
    "obj_optimizer": "optimizer= takes an optimiser of softcvi.fitting",
    "total_grad_norm_constraint": "optimizer= takes one that clips gradients",
    "start_sigma": "start= takes draws, whose spread is used",
    "score": "hist is always recorded",
}


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

    def sample(self, draws: int = 500, *, random_seed: Any = None) -> Any:
        """Draws of the answer as the trace that PyMC's own functions take.

        They are the draws that the verdict is about. An ``InferenceData`` with PyMC 5,
        a ``DataTree`` with PyMC 6, with the groups ``posterior``, ``sample_stats``,
        ``log_likelihood``, ``observed_data`` and ``constant_data``.

        Args:
            draws: Number of draws.
            random_seed: A seed or a NumPy generator; the same seed gives the same
                draws.
        """
        seed = self.seed + 1 if random_seed is None else _as_seed(random_seed)
        drawn = self.result.sample(jax.random.key(seed), draws)
        tree = to_arviz(self.result, draws=drawn, predictive=False)
        return as_trace({name: group.to_dataset() for name, group in tree.items()})


def fit(
    n: int = 10_000,
    method: str | None = None,
    *,
    model: Any = None,
    random_seed: Any = None,
    start: Any = "auto",
    progressbar: bool = True,
    **options: Any,
) -> Approximation:
    """Fit a PyMC model by SoftCVI in the manner of ``pm.fit``.

    Args:
        n: Optimisation steps.
        method: Names a guide as ``pm.fit`` does, ``"advi"`` for a normal of independent
            parameters and ``"fullrank_advi"`` for one with correlations; it is trained
            by SoftCVI all the same. By default the start chooses.
        model: A ``pymc.Model`` or ``bambi.Model``; the model context by default.
        random_seed: A seed or a NumPy generator.
        start: As in ``softcvi.fit``; a point may leave variables out, which then begin
            at PyMC's initial point.
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
    if method is not None and method not in _METHODS:
        raise ValueError(
            f"method: expected one of {sorted(_METHODS)}, or None for a guide that the "
            f"start chooses; got {method!r}. For another guide use guide=."
        )
    for name in options:
        if name in _ELSEWHERE:
            raise TypeError(f"{name}: an option of pm.fit only; {_ELSEWHERE[name]}.")
    if model is None:
        model = require("pymc", "pymc").modelcontext(None)
    seed = _as_seed(random_seed)
    target = from_pymc(model)
    if method is not None:
        options["guide"] = _METHODS[method](target)
    if isinstance(start, Mapping):
        start = _whole_point(target, start)
    key = jax.random.key(seed)
    options |= {"steps": n, "start": start, "progress": progressbar}
    return Approximation(fit_target(key, target, **options), seed)


def _as_seed(random_seed: Any) -> int:
    return int(np.random.default_rng(random_seed).integers(2**31 - 2))


def _whole_point(target: PyMCTarget, point: Mapping) -> dict[str, Any]:
    """A point of all variables, those that are not given from PyMC's initial point."""
    unknown = sorted(set(point) - set(target.graphs.names))
    if unknown:
        raise ValueError(
            f"start: {unknown} are no free variables of the model, which has "
            f"{sorted(target.graphs.names)}."
        )
    return {**target.initial_point(), **point}
