"""A rung that trains a flow on the space whitened by the best guide so far."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from softcvi.fitting import FitResult, TimeLimit, fit
from softcvi.guides import VectorGuide, spline_flow, whitened
from softcvi.ladder._base import AbstractRung, Attempt, LadderState
from softcvi.objectives import SoftCVI
from softcvi.starts._choose import EASY_DIM, FAR_OFF_KHAT
from softcvi.targets import AbstractTarget

# Without a gradient there are no chains, which are quicker in many dimensions.
_MAX_DIM = 32
# Largest share of the remaining time for a flow: chains come after it, and are more
# reliable.
_SHARE_OF_BUDGET = 0.25
_MOMENT_DRAWS = 4096


class Flow(AbstractRung):
    """A spline flow behind an affine map, unless earlier answers were too far off.

    Not with more than 16 parameters (32 without a gradient, where there are no chains),
    not where everything before was far off (except for the first flow), and not where
    it would take most of the time that is left.

    Args:
        name: What to call it.
        layers: Layers of the flow.
        width: Width of its networks.
        particles: Particles per step.
        factor: Steps, as a multiple of those of a simple guide.

    Example:
        >>> from softcvi.ladder import Flow
        >>> rung = Flow("wide spline flow", layers=4, width=100)
    """

    name: str = eqx.field(static=True, default="spline flow")
    layers: int = eqx.field(static=True, default=4)
    width: int = eqx.field(static=True, default=40)
    particles: int = eqx.field(static=True, default=16)
    factor: int = eqx.field(static=True, default=1)

    def attempt(self, state: LadderState) -> Attempt | None:
        best = state.best_fit
        if best is None or not self._is_worthwhile(state):
            return None
        return state.judged(self.name, lambda: self._fit(state, best))

    def _is_worthwhile(self, state: LadderState) -> bool:
        structure = state.target.structure
        most = EASY_DIM if state.target.has_gradient else _MAX_DIM
        if not structure.is_continuous or structure.size > most:
            return False
        flows = [f for f in state.fits if f.posterior.guide.is_flow]
        # In many dimensions a flow cannot correct a normal that is far off, and a
        # deeper flow does not correct a flow in any.
        tried = flows[-1:] or state.fits
        is_easy = structure.size <= EASY_DIM and not flows
        if min(f.khat for f in tried) > FAR_OFF_KHAT and not is_easy:
            return False
        expected = 0.0
        if flows:
            work = self.layers * self.particles * self.factor
            expected = work / _WORK_OF_FIRST * flows[-1].seconds_run
        return expected <= _SHARE_OF_BUDGET * state.seconds_left

    def _fit(self, state: LadderState, best: FitResult) -> FitResult:
        flow = spline_flow(
            state.target, key=state.key, layers=self.layers, width=self.width
        )
        result = fit(
            state.key,
            state.target,
            _on_whitened_space(flow, best, state.target),
            objective=SoftCVI(num_particles=self.particles),
            steps=self.factor * state.steps,
            start=None,
            stopping=TimeLimit(max(state.seconds_left, 1.0)),
            progress=state.reporter,
            checkpoint=state.checkpoint,
        )
        choices = {"start": "the moments of the best guide before", "guide": self.name}
        return dataclasses.replace(result, choices=choices, start=state.report)


_WORK_OF_FIRST = 4 * 16


def _on_whitened_space(
    flow: VectorGuide, best: FitResult, target: AbstractTarget
) -> VectorGuide:
    """The flow on the space whitened by the moments of an earlier fit."""
    guide, structure = best.posterior.guide, target.structure
    keys = jax.random.split(jax.random.key(0), _MOMENT_DRAWS)
    draws = jax.vmap(lambda k: structure.ravel(guide.sample(k)))(keys)
    draws = np.asarray(draws, np.float64)
    covariance = np.cov(draws.T).reshape(draws.shape[1], draws.shape[1])
    covariance = covariance + 1e-9 * np.diag(np.diagonal(covariance))
    factor = np.linalg.cholesky(covariance)
    dtype = jnp.result_type(*structure.dtypes)
    return whitened(
        flow, jnp.asarray(draws.mean(axis=0), dtype), jnp.asarray(factor, dtype)
    )
