"""Fits of products of independent parts: each part is fitted by itself.

Each part is also searched, weighted and judged by itself. If each of a hundred parts
has two modes, neither a list of all modes nor the weight of a whole particle helps.
"""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi._compile import as_array, host_fold_in, host_key
from softcvi.diagnostics import THRESHOLDS, Evidence, SearchEvidence
from softcvi.diagnostics._chain_draws import in_model
from softcvi.guides import MappedGuide, ProductGuide
from softcvi.posterior import Posterior
from softcvi.starts import StartReport
from softcvi.starts._parts import Parts, independent_parts
from softcvi.targets import AbstractTarget
from softcvi.targets._cost import affordable

if TYPE_CHECKING:
    from softcvi.fitting._result import FitResult

# Draws for estimates, and those at which the parts are checked once more.
_DRAWS, _CHECKED = 4000, 256
_SEED = 20_27
# Operations and draws for the evidence of a kind, which counts once for each part.
_BUDGET, _MOST_DRAWS = 3e10, 1_000_000
_PIECE = 1000


@dataclasses.dataclass(frozen=True)
class PartsAnswer:
    """Answers of the independent parts of a posterior.

    Attributes:
        parts: The parts.
        results: The fit of one part of each kind.
        search: How far the start has searched for places of the whole; None if not.
    """

    parts: Parts
    results: "tuple[FitResult, ...]"
    search: SearchEvidence | None

    @property
    def worst(self) -> "FitResult":
        """The answer that can be trusted least."""
        return min(self.results, key=lambda result: result.rank)

    @functools.cached_property
    def evidence(self) -> Evidence:
        """That of the part that can be trusted least, with the evidence of all."""
        found = self.worst.verdict.evidence
        weights = found.weights
        if weights is not None:
            weights = dataclasses.replace(weights, log_evidence=self.log_evidence)
        search = found.search
        if search is not None and self.search is not None:
            met = self.search.num_infinite, self.search.nearest_infinite
            search = search.with_infinite(*met)
        return dataclasses.replace(
            found,
            weights=weights,
            search=search,
            num_parts=self.parts.count,
            model_warnings=self.parts.target.model_warnings,
        )

    @functools.cached_property
    def log_evidence(self) -> float | None:
        """Log evidence of the whole; None where weights correct not every part."""
        target = self.parts.target
        total = target.log_offset - (self.parts.count - 1) * self.parts.height
        for rows, result in zip(self.parts.kinds, self.results, strict=True):
            if result.chains is not None or not result.has_usable_weights:
                return None
            found, own = result.importance.log_evidence, result.posterior.target
            assert own is not None  # a fit has one
            most = min(_DRAWS * len(rows), _MOST_DRAWS)
            draws = affordable(own, _BUDGET, fewest=0, most=most)
            if draws > len(result.importance.log_q):
                found = result.posterior.log_evidence(host_key(_SEED), draws)
            total += len(rows) * found
        return float(total)

    @functools.cached_property
    def draws(self) -> dict[str, Array]:
        """Draws to make estimates from."""
        return self.sample(host_key(_SEED), _DRAWS)

    def sample(self, key: PRNGKeyArray, n: int) -> dict[str, Array]:
        """Draws of all parts side by side, in model coordinates.

        Args:
            key: Random key.
            n: Number of draws.
        """
        target = self.parts.target
        dtype = jnp.result_type(*target.structure.dtypes)
        pieces = np.array_split(self.vectors(key, n), -(-n // _PIECE))
        found = [in_model(as_array(piece, dtype), target) for piece in pieces]
        return {
            name: jnp.asarray(np.concatenate([piece[name] for piece in found]))
            for name in found[0]
        }

    def vectors(self, key: PRNGKeyArray, n: int) -> Float[np.ndarray, "n d"]:
        """The same as vectors of the fitting space.

        Args:
            key: Random key.
            n: Number of draws.
        """
        vectors = np.empty((n, self.parts.rest.size))
        pairs = zip(self.parts.kinds, self.results, strict=True)
        for number, (rows, result) in enumerate(pairs):
            drawn = result.sample(host_fold_in(key, number), n * len(rows))
            [values] = drawn.values()
            vectors[:, rows] = np.asarray(values).reshape(n, *rows.shape)
        return vectors

    @property
    def guide(self) -> ProductGuide:
        """The product of all parts' guides, in the fitting space of the whole."""
        components, coordinates = [], []
        for rows, result in zip(self.parts.kinds, self.results, strict=True):
            own = result.posterior
            components += [MappedGuide(own.guide, own.space)] * len(rows)
            coordinates += list(rows)
        return ProductGuide(components, coordinates, self.parts.target)


def is_clear(report: StartReport | None) -> bool:
    """Whether a start has found one place, and misses none as far as it knows.

    Args:
        report: What it has found.
    """
    if report is None:
        return True
    if len(report.modes) > 1:
        return False
    missing = None if report.search is None else report.search.missing_mass
    return (missing or 0.0) < THRESHOLDS.caution_missing


def fitted_by_parts(
    key: PRNGKeyArray,
    target: AbstractTarget,
    report: StartReport | None,
    fit_one: Callable[..., Any],
) -> "FitResult | None":
    """A fit of each independent part; None where there are none.

    Args:
        key: Random key.
        target: The posterior.
        report: What the start has found of the whole; its modes must fit the parts.
        fit_one: Fits the posterior of one part, given a key.
    """
    began = time.perf_counter()
    modes = () if report is None else report.modes
    if report is not None and report.target.unwrapped is not target.unwrapped:
        # Modes in other coordinates cannot be compared with the parts of these.
        if len(modes) > 1:
            return None
        modes = ()
    parts = independent_parts(key, target, modes)
    if parts is None:
        return None
    results = []
    for kind in range(len(parts.kinds)):
        result = fit_one(host_fold_in(key, kind), parts.one(kind))
        if result.status != "finished":
            return None
        results.append(result)
    search = None if report is None else report.search
    answer = PartsAnswer(parts, tuple(results), search)
    if not parts.hold_at(answer.vectors(host_key(_SEED), _CHECKED)):
        return None
    worst = answer.worst
    words = (
        f"{parts.count} independent parts of at most {parts.largest} parameters and "
        f"{len(results)} kind(s), each fitted by itself"
    )
    seconds = time.perf_counter() - began
    starting = sum(result.seconds_start for result in results)
    compiling = sum(result.seconds_compile for result in results)
    return dataclasses.replace(
        worst,
        posterior=Posterior(answer.guide, target),
        parts=answer,
        chains=None,
        start=None,
        choices={"parts": words, **{f"worst {k}": v for k, v in worst.choices.items()}},
        seconds_start=starting,
        seconds_compile=compiling,
        seconds_run=max(seconds - starting - compiling, 0.0),
    )
