"""The last rungs: chains in the space that the rungs before have whitened."""

import dataclasses
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi.diagnostics import Evidence, Verdict, judge, summarise
from softcvi.diagnostics._chain_draws import MET_RHAT, ChainDraws
from softcvi.fitting import History, as_table
from softcvi.fitting._compare import with_redrawn
from softcvi.fitting._correct import corrected
from softcvi.ladder._base import AbstractRung, Attempt, LadderState
from softcvi.ladder._chain_space import ChainSpace, chain_space
from softcvi.ladder._convergence import rhat_and_ess
from softcvi.posterior import Posterior
from softcvi.starts import StartReport
from softcvi.targets import AbstractTarget

_LEVELS = {"not trusted": 0, "caution": 1, "trusted": 2}
_MAX_DRAWS = 64_000


class ShortChains(AbstractRung):
    """Hamiltonian chains that begin at draws of the best guide, as in ``fit``.

    Many of them side by side in the space that the guide has whitened: where the guide
    is near the posterior they take a second or two. Not with several modes, whose
    masses chains do not tell, and only for targets with a gradient.

    Example:
        >>> from softcvi.ladder import ShortChains
        >>> rung = ShortChains()
    """

    def attempt(self, state: LadderState) -> Attempt | None:
        best = state.best_fit
        if best is None:
            return None
        answer = corrected(best)
        if answer is best:
            return None
        # The time of the guide is that of its own attempt.
        seconds = answer.seconds_run - best.seconds_run
        answer = answer.with_facts(seconds_compile=0.0, seconds_run=seconds)
        attempt = state.judged("short chains", lambda: answer)
        return dataclasses.replace(attempt, seconds=seconds)


@dataclasses.dataclass(eq=False)
class ChainResult:
    """An answer whose draws are those of chains; it offers what a ``FitResult`` does.

    Attributes:
        chains: Their draws.
        posterior: The guide whose base space the chains moved in.
        message: How many chains of which length.
        start: What the start found about the posterior.
        evidence: What the verdict is made from.
        seconds_compile: Time of compilation and warm-up.
        seconds_run: Time of the draws.
        status: ``"finished"``.
        history: Empty: chains have none.

    Example:
        >>> from softcvi.ladder import Chains
        >>> rung = Chains()  # its attempt ends with a ChainResult
    """

    chains: ChainDraws
    posterior: Posterior
    message: str
    start: StartReport
    evidence: Evidence
    seconds_compile: float
    seconds_run: float
    status: str = "finished"
    history: History = dataclasses.field(
        default_factory=lambda: History(*4 * (np.zeros(0),))
    )

    @property
    def verdict(self) -> Verdict:
        """Whether the chains can be trusted."""
        return judge(self.evidence)

    @property
    def draws_are(self) -> str:
        """Where the draws of ``sample`` come from."""
        return "from chains (NUTS)"

    @property
    def rank(self) -> tuple[int, float, float]:
        """The verdict, then the effective sample size."""
        return _LEVELS[self.verdict.level], self.chains.ess, -np.inf

    def sample(self, key: PRNGKeyArray, n: int = 1000) -> dict[str, Array]:
        """Draws of the chains; with replacement if more are wanted than there are.

        Args:
            key: Random key.
            n: Number of draws.
        """
        return self.chains.sample(key, n)

    def summary(self, max_rows: int = 20) -> str:
        """Verdict and estimates as text.

        Args:
            max_rows: Parameters to list.
        """
        lines = [
            f"verdict    {self.verdict}",
            f"status     {self.status}: {self.message}",
            f"time       compilation and warm-up {self.seconds_compile:.1f} s, draws "
            f"{self.seconds_run:.1f} s",
            f"estimates  {self.draws_are}",
            "",
            *as_table(summarise(self.chains.draws), max_rows),
        ]
        return "\n".join(lines)


class Chains(AbstractRung):
    """NUTS (from NumPyro) in the whitened space; draws until trusted or out of time.

    For any target with a gradient. Where the guide is good, its base space is close to
    a standard normal, which is as easy as a target can be; where it is not, the chains
    correct it. Chains begin over-dispersed, in every mode that the start found. If they
    do not agree, they begin again with smaller steps and a longer warm-up.

    Args:
        acceptance: Acceptance probability to aim at.
        depth: Largest depth of a tree of steps.
        warmup: Transitions of warm-up per chain.
        draws: Draws per chain in each piece.

    Example:
        >>> from softcvi.ladder import Chains
        >>> rung = Chains(acceptance=0.95)
    """

    acceptance: float = eqx.field(static=True, default=0.85)
    depth: int = eqx.field(static=True, default=8)
    warmup: int = eqx.field(static=True, default=500)
    draws: int = eqx.field(static=True, default=1000)

    def attempt(self, state: LadderState) -> Attempt | None:
        space = chain_space(state)
        if space is None:
            return None
        name = f"NUTS in the whitened space, acceptance {self.acceptance:g}"
        return state.judged(name, lambda: self._run(state, space))

    def further(self, attempt: Attempt) -> "Chains":
        rejection = max(1.0 - self.acceptance, 0.002) / 3.0
        return Chains(
            1.0 - rejection, min(self.depth + 2, 12), 2 * self.warmup, self.draws
        )

    def _run(self, state: LadderState, space: ChainSpace) -> ChainResult:
        sampler = self._sampler(space, state.target)
        began = time.perf_counter()
        sampler.warmup(
            jax.random.key_data(state.key),
            init_params=space.starts,
            extra_fields=("diverging",),
        )
        seconds_compile, began = time.perf_counter() - began, time.perf_counter()
        pieces: list[np.ndarray] = []
        divergences = 0
        while True:
            piece_began = time.perf_counter()
            sampler.run(sampler.post_warmup_state.rng_key, extra_fields=("diverging",))
            pieces.append(np.asarray(sampler.get_samples(group_by_chain=True)))
            divergences += int(np.sum(sampler.get_extra_fields()["diverging"]))
            sampler.post_warmup_state = sampler.last_state
            chain, vectors = _described(pieces, divergences, space, state.target)
            took = time.perf_counter() - piece_began
            can_help = chain.rhat < MET_RHAT and not chain.trusted
            total = chain.evidence.num_draws
            if not can_help or took > state.seconds_left or total >= _MAX_DRAWS:
                break
        count = len(space.starts)
        return ChainResult(
            chains=chain,
            posterior=Posterior(space.guide, state.target),
            message=f"{count} chains of {self.warmup} + {total // count} transitions",
            start=state.report,
            evidence=_evidence(state, chain, vectors),
            seconds_compile=seconds_compile,
            seconds_run=time.perf_counter() - began,
        )

    def _sampler(self, space: ChainSpace, target: AbstractTarget) -> Any:
        try:
            from numpyro.infer import MCMC, NUTS
        except ImportError as error:
            raise ImportError(
                "chains need NumPyro; pip install softcvi[numpyro]."
            ) from error

        def potential(z):
            particle, log_det = space.guide.from_base(z)
            return -(target.log_density(particle) + log_det)

        kernel = NUTS(
            potential_fn=potential,
            max_tree_depth=self.depth,
            target_accept_prob=self.acceptance,
        )
        return MCMC(
            kernel,
            num_warmup=self.warmup,
            num_samples=self.draws,
            num_chains=len(space.starts),
            chain_method="vectorized",
            progress_bar=False,
        )


def _evidence(
    state: LadderState, chains: ChainDraws, vectors: Float[np.ndarray, "n d"]
) -> Evidence:
    """What is known of the chains, and of the density by the guides before them.

    Chains that agree may all have missed what the broad draws of the search have met.
    """
    best, search = state.best_fit, state.report.search
    density = Evidence() if best is None else best.evidence
    evidence = Evidence(
        status="finished",
        sampler=chains.evidence,
        search=search,
        broad=None if search is None else search.compared_with_broad(vectors),
        precision=density.precision,
        improper=density.improper,
        cut=density.cut,
        num_infinite=max((f.evidence.num_infinite for f in state.fits), default=0),
        change=density.change,
        has_gradient=True,
        dimension=state.target.structure.size,
        model_warnings=state.target.model_warnings,
    )
    return with_redrawn(evidence, state.target, vectors)


def _described(
    pieces: list[np.ndarray],
    divergences: int,
    space: ChainSpace,
    target: AbstractTarget,
) -> tuple[ChainDraws, Float[np.ndarray, "n d"]]:
    """All draws in model coordinates, whether the chains agree; and as vectors."""
    z = jnp.asarray(np.concatenate(pieces, axis=1))
    named, vectors = _in_model(z, space.guide, target)
    by_chain = {k: np.asarray(v) for k, v in named.items()}
    rhat, ess = rhat_and_ess(by_chain)
    joined = {k: jnp.asarray(v.reshape(-1, *v.shape[2:])) for k, v in by_chain.items()}
    chains = ChainDraws(joined, rhat, ess, divergences)
    return chains, np.asarray(vectors, np.float64).reshape(-1, vectors.shape[-1])


@eqx.filter_jit
def _in_model(z, guide, target):
    def one(z):
        particle, _ = guide.from_base(z)
        described = target.describe(target.space.to_model(particle))
        return described, target.structure.ravel(particle)

    return jax.vmap(jax.vmap(one))(z)
