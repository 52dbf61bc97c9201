"""``fit_until``: a ladder of guides up to an answer that can be trusted."""

import dataclasses
import time

import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Array, PRNGKeyArray

from softcvi.diagnostics import Verdict
from softcvi.fitting._checks import check_target, checked_key
from softcvi.fitting._fit import fit
from softcvi.fitting._nuts import ChainDraws, has_base_space, nuts_in_base_space
from softcvi.fitting._progress import AbstractReporter
from softcvi.fitting._result import FitResult
from softcvi.fitting._start import is_flow
from softcvi.guides import VectorGuide, spline_flow, whitened
from softcvi.objectives import SoftCVI
from softcvi.targets import AbstractTarget

_MAX_FLOW_DIM = 64
_HOPELESS = 1.0


@dataclasses.dataclass(frozen=True)
class Rung:
    """One attempt of the ladder.

    Attributes:
        name: What was tried.
        seconds: Wall time, compilation included.
        verdict: What the program thought of it.
        khat: Pareto k-hat, NaN for a chain.

    Example:
        >>> from softcvi.fitting import Rung
        >>> Rung("full-rank normal", 4.2, "trusted: k-hat 0.10", 0.1).khat
        0.1
    """

    name: str
    seconds: float
    verdict: str
    khat: float


@dataclasses.dataclass(eq=False)
class LadderResult:
    """The answer of ``fit_until``.

    Attributes:
        result: The best fit of a guide.
        chain: Draws of the last rung, if it was needed.
        rungs: Every attempt, in order.
        trusted: Whether the last attempt is trusted.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> answer = softcvi.fit_until(jax.random.key(0), target, progress=False)
        >>> answer.trusted, len(answer.rungs)
        (True, 1)
    """

    result: FitResult
    chain: ChainDraws | None
    rungs: list[Rung]
    trusted: bool

    @property
    def posterior(self):
        """The best guide as a posterior."""
        return self.result.posterior

    @property
    def verdict(self) -> Verdict:
        """What the program thinks of the answer: of the chain, if there is one."""
        if self.chain is None:
            return self.result.verdict
        return Verdict(
            level="trusted" if self.chain.trusted else "not trusted",
            reasons=(self.rungs[-1].verdict.split(": ", 1)[-1],),
            khat=self.result.khat,
            ess_share=self.chain.ess / len(next(iter(self.chain.draws.values()))),
            evidence={"rhat": self.chain.rhat, "ess": self.chain.ess},
        )

    def sample(self, key: PRNGKeyArray, n: int = 1000) -> dict[str, Array]:
        """Draws of the trusted answer: from the chain if there is one.

        Args:
            key: Random key.
            n: Number of draws.
        """
        if self.chain is None:
            return self.result.sample(key, n)
        total = len(next(iter(self.chain.draws.values())))
        index = jax.random.choice(key, total, (n,), replace=n > total)
        return {name: values[index] for name, values in self.chain.draws.items()}

    def summary(self) -> str:
        """Each rung in a line, then the summary of the fit."""
        lines = [
            f"{rung.name:<28} {rung.seconds:6.1f} s  {rung.verdict}"
            for rung in self.rungs
        ]
        return "\n".join([*lines, "", self.result.summary()])


def fit_until(
    key: PRNGKeyArray,
    target: AbstractTarget,
    khat: float = 0.7,
    budget: float = 600.0,
    *,
    steps: int = 10_000,
    progress: bool | AbstractReporter = True,
) -> LadderResult:
    """Climb from a simple guide to richer ones until the answer is trusted.

    The rungs: the guide that ``fit`` chooses, a spline flow on the space whitened by
    it (unless it was a flow), a deeper flow with more particles (unless the last one
    was far off), and at last NUTS in the base space of the best guide, whose draws come
    with R-hat and effective sample size.

    Args:
        key: Random key.
        target: The posterior.
        khat: k-hat that an accepted guide must stay below.
        budget: Seconds after which no further rung is begun.
        steps: Optimisation steps of the first rung; later ones take as many or more.
        progress: Show progress on a terminal; or a reporter.

    Returns:
        The answer with every rung, whether trusted or not.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> answer = softcvi.fit_until(
        ...     jax.random.key(0), target, steps=200, progress=False
        ... )
        >>> answer.rungs[0].verdict.startswith("trusted")
        True
    """
    key = checked_key(key)
    check_target(target, SoftCVI())
    if not 0 < khat <= 1:
        raise ValueError(f"khat: must lie in (0, 1]; got {khat}.")
    if not budget > 0:
        raise ValueError(f"budget: must be a positive number of seconds; got {budget}.")
    began = time.perf_counter()
    keys = jax.random.split(key, 4)
    rungs: list[Rung] = []
    results: list[FitResult] = []

    def attempt(name: str, **arguments) -> bool:
        rung_began = time.perf_counter()
        result = fit(target=target, progress=progress, **arguments)
        verdict = result.verdict
        seconds = time.perf_counter() - rung_began
        rungs.append(Rung(name, seconds, str(verdict), verdict.khat))
        results.append(result)
        return verdict.trusted and (verdict.khat < khat or verdict.has_even_weights)

    def over_budget() -> bool:
        return time.perf_counter() - began > budget

    if attempt("the guide that suits", key=keys[0], steps=steps):
        return LadderResult(results[-1], None, rungs, trusted=True)
    # The first rung may have found better coordinates.
    target = results[0].posterior.target or target
    flows = (
        ("spline flow", 4, 40, 16, 1),
        ("deeper spline flow", 8, 64, 32, 2),
    )
    can_flow = target.structure.is_continuous and target.structure.size <= _MAX_FLOW_DIM
    # A flow that is far off needs another method rather than more of the same.
    began_with_flow = is_flow(results[0].posterior.guide)
    for i, (name, layers, width, particles, factor) in enumerate(flows):
        tried_flow = began_with_flow or i > 0
        if over_budget() or not can_flow or (tried_flow and rungs[-1].khat > _HOPELESS):
            break
        if i == 0 and began_with_flow:
            continue
        flow = spline_flow(keys[i + 1], target, layers=layers, width=width)
        guide = _behind_best(flow, _best(results), target)
        if attempt(
            name,
            key=keys[i + 1],
            guide=guide,
            objective=SoftCVI(num_particles=particles),
            steps=factor * steps,
            start=None,
        ):
            return LadderResult(results[-1], None, rungs, trusted=True)
    best = _best([r for r in results if has_base_space(r.posterior)] or results)
    if over_budget() or not has_base_space(best.posterior):
        return LadderResult(best, None, rungs, trusted=False)
    rung_began = time.perf_counter()
    chain = nuts_in_base_space(keys[3], best.posterior)
    verdict = "trusted" if chain.trusted else "not trusted"
    verdict += f": R-hat {chain.rhat:.3f}, effective sample size {chain.ess:.0f}"
    seconds = time.perf_counter() - rung_began
    rungs.append(Rung("NUTS in the base space", seconds, verdict, float("nan")))
    return LadderResult(best, chain, rungs, trusted=chain.trusted)


def _best(results: list[FitResult]) -> FitResult:
    """The fit with the highest ELBO at its end: the closest in reverse KL."""
    elbos = [result.history.last()["elbo"] for result in results]
    return results[int(np.nanargmax(np.nan_to_num(elbos, nan=-np.inf)))]


def _behind_best(
    flow: VectorGuide, best: FitResult, target: AbstractTarget
) -> VectorGuide:
    """The flow on the space whitened by the moments of an earlier fit."""
    guide = paramax.unwrap(best.posterior.guide)
    keys = jax.random.split(jax.random.key(0), 4096)
    draws = jax.vmap(lambda k: target.structure.ravel(guide.sample(k)))(keys)
    draws = np.asarray(draws, np.float64)
    covariance = np.cov(draws.T).reshape(draws.shape[1], draws.shape[1])
    covariance = covariance + 1e-9 * np.diag(np.diagonal(covariance))
    dtype = jnp.result_type(*target.structure.dtypes)
    factor = jnp.asarray(np.linalg.cholesky(covariance), dtype)
    return whitened(flow, jnp.asarray(draws.mean(axis=0), dtype), factor)
