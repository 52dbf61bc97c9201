"""The rungs of the ladder that ``fit_until`` climbs."""

import dataclasses
import time

import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import PRNGKeyArray

from softcvi.fitting._fit import fit
from softcvi.fitting._progress import AbstractReporter
from softcvi.fitting._result import FitResult
from softcvi.guides import VectorGuide, full_rank, spline_flow, whitened
from softcvi.ladder._chains import ChainDraws, has_base_space, nuts_in_base_space
from softcvi.objectives import SoftCVI, TemperedProposal
from softcvi.posterior import Posterior
from softcvi.starts import Explore, InBestSpace, StartReport, suggest
from softcvi.starts._choose import EASY_DIM, FAR_OFF_KHAT
from softcvi.starts._place import is_flow
from softcvi.targets import AbstractTarget

# In more dimensions chains are quicker than flows, and surer.
_MAX_FLOW_DIM = 32
# Name, layers, width, particles, times the steps.
_FLOWS = (
    ("spline flow", 4, 40, 16, 1),
    ("deeper spline flow", 8, 64, 32, 2),
)
# Twice the steps, the layers and the particles of the flow before.
_DEEPER = 8
# Acceptance to aim at, depth of the trees, warm-up.
_CHAINS = (
    ("NUTS in the base space", 0.85, 8, 500),
    ("NUTS with smaller steps", 0.97, 10, 1000),
)


@dataclasses.dataclass(frozen=True)
class Rung:
    """One attempt of the ladder.

    Attributes:
        name: What was tried.
        seconds: Wall time, compilation included.
        verdict: What the program thought of it.
        khat: Pareto k-hat, NaN for a chain.

    Example:
        >>> from softcvi.ladder import Rung
        >>> Rung("full-rank normal", 4.2, "trusted: k-hat 0.10", 0.1).khat
        0.1
    """

    name: str
    seconds: float
    verdict: str
    khat: float


class Climb:
    """One climb of the ladder, with what was found on the way.

    Args:
        key: Random key.
        target: The posterior.
        khat: k-hat that an accepted guide must stay below.
        budget: Seconds after which no further rung is begun.
        steps: Optimisation steps of the first rung.
        progress: Show progress on a terminal; or a reporter.
    """

    report: StartReport

    def __init__(
        self,
        key: PRNGKeyArray,
        target: AbstractTarget,
        khat: float,
        budget: float,
        steps: int,
        progress: bool | AbstractReporter,
    ):
        self.keys = [jax.random.fold_in(key, i) for i in range(5)]
        self.target = target
        self.khat = khat
        self.ends = time.perf_counter() + budget
        self.steps = steps
        self.progress = progress
        self.rungs: list[Rung] = []
        self.results: list[FitResult] = []
        self.chain: ChainDraws | None = None
        self.trusted = False

    @property
    def left(self) -> float:
        """Seconds of the budget that are left."""
        return self.ends - time.perf_counter()

    @property
    def best(self) -> FitResult:
        """The trusted fit, or the one with the highest ELBO at its end."""
        if self.trusted and self.chain is None:
            return self.results[-1]
        return _highest_elbo(self.results)

    def simplest_guide(self) -> bool:
        """A normal or a t on what the start found, corrected by weights."""
        self.report = InBestSpace(Explore()).find(self.keys[0], self.target)
        self.target = self.report.target
        choice = suggest(self.keys[0], self.report)[0]
        guide, why = choice.guide, choice.description
        name = why.split(":")[0]
        if self._attempt(
            name,
            key=self.keys[0],
            guide=guide,
            # The forward divergence: its optimum has the posterior's moments, which
            # makes good weights where the family is too small.
            objective=SoftCVI(16, TemperedProposal(1.0)),
            # Without a gradient the start is the first part of the fit.
            start=None if self.report.modes else "auto",
            steps=self.steps,
            choices={"start": self.report.description, "guide": why},
        ):
            return True
        if not self.report.modes:
            return False
        # The start's own moments are wider than the best fit of a family that is too
        # small: sometimes the better weights, and they cost next to nothing.
        began = time.perf_counter()
        untrained = dataclasses.replace(
            self.results[-1], posterior=Posterior(guide, self.target)
        )
        return self._judge(f"{name}, as started", untrained, began)

    def flows(self) -> bool:
        """Flows on the space whitened by the best fit so far, while there is hope."""
        structure = self.target.structure
        if not structure.is_continuous or structure.size > _MAX_FLOW_DIM:
            return False
        tried_flow = is_flow(self.results[0].posterior.guide)
        for i, (name, layers, width, particles, factor) in enumerate(_FLOWS):
            # In many dimensions a flow cannot make up for a normal that is far off,
            # and nowhere a deeper flow for a flow.
            is_easy = structure.size <= EASY_DIM and not tried_flow
            tried = self.rungs[-1:] if tried_flow else self.rungs
            if min(rung.khat for rung in tried) > FAR_OFF_KHAT and not is_easy:
                return False
            # Chains are sure: no flow may take most of the time they need.
            expected = _DEEPER * self.results[-1].seconds_run if tried_flow else 0.0
            if expected > self.left / 4 or self.left < 0:
                return False
            if i == 0 and tried_flow:
                continue
            key = self.keys[i + 1]
            flow = spline_flow(self.target, key=key, layers=layers, width=width)
            tried_flow = True
            if self._attempt(
                name,
                key=key,
                guide=_behind(flow, self.best, self.target),
                objective=SoftCVI(num_particles=particles),
                steps=factor * self.steps,
                start=None,
                choices={"start": "the moments of the rung before", "guide": name},
            ):
                return True
        return False

    def chains(self) -> bool:
        """NUTS in the base space of the best guide, with smaller steps if need be."""
        posterior = self._base()
        if posterior is None:
            return False
        for i, (name, acceptance, depth, warmup) in enumerate(_CHAINS):
            if self.left < 0:
                break
            began = time.perf_counter()
            chain = nuts_in_base_space(
                self.keys[3 + i],
                posterior,
                acceptance=acceptance,
                depth=depth,
                warmup=warmup,
            )
            seconds = time.perf_counter() - began
            if self.chain is None or chain.is_better_than(self.chain):
                self.chain = chain
            self.rungs.append(Rung(name, seconds, str(chain), float("nan")))
            if chain.trusted:
                self.trusted = True
                break
        return self.trusted

    def _base(self) -> Posterior | None:
        """What the chains see the posterior through."""
        usable = [r for r in self.results if has_base_space(r.posterior)]
        if not usable:
            return None
        best = _highest_elbo(usable)
        # Each step of a chain through a flow costs a pass for every dimension.
        is_quick = not is_flow(best.posterior.guide) or (
            self.target.structure.size <= EASY_DIM
        )
        if (is_quick and best.khat <= FAR_OFF_KHAT) or len(self.report.modes) != 1:
            return best.posterior
        # And a guide that is far off bends the space; what the start found does not.
        mode = self.report.modes[0]
        guide = full_rank(self.target).matched(
            *_as_arrays(self.target, mode.mean, mode.dense)
        )
        assert guide is not None  # normals know how
        return Posterior(guide, self.target)

    def _attempt(self, name: str, choices: dict[str, str], **arguments) -> bool:
        began = time.perf_counter()
        result = fit(target=self.target, progress=self.progress, **arguments)
        result = dataclasses.replace(result, choices=choices)
        return self._judge(name, result, began)

    def _judge(self, name: str, result: FitResult, began: float) -> bool:
        verdict = result.verdict
        seconds = time.perf_counter() - began
        self.rungs.append(Rung(name, seconds, str(verdict), verdict.khat))
        self.results.append(result)
        is_sure = verdict.khat < self.khat or verdict.has_even_weights
        self.trusted = verdict.trusted and is_sure
        return self.trusted


def _highest_elbo(results: list[FitResult]) -> FitResult:
    elbos = [result.history.last()["elbo"] for result in results]
    return results[int(np.nanargmax(np.nan_to_num(elbos, nan=-np.inf)))]


def _behind(flow: VectorGuide, best: FitResult, target: AbstractTarget) -> VectorGuide:
    """The flow on the space whitened by the moments of an earlier fit."""
    guide = paramax.unwrap(best.posterior.guide)
    keys = jax.random.split(jax.random.key(0), 4096)
    draws = jax.vmap(lambda k: target.structure.ravel(guide.sample(k)))(keys)
    draws = np.asarray(draws, np.float64)
    covariance = np.cov(draws.T).reshape(draws.shape[1], draws.shape[1])
    covariance = covariance + 1e-9 * np.diag(np.diagonal(covariance))
    factor = np.linalg.cholesky(covariance)
    return whitened(flow, *_as_arrays(target, draws.mean(axis=0), factor))


def _as_arrays(target: AbstractTarget, *values: np.ndarray):
    dtype = jnp.result_type(*target.structure.dtypes)
    return [jnp.asarray(value, dtype) for value in values]
