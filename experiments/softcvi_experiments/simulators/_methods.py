"""The methods: each takes a simulator and counts its evaluations."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

import softcvi
from softcvi.adapters import AskTellSession, from_callable
from softcvi_experiments.simulators._models import Simulator

_BUDGET, _BATCH = 3_200, 32
_PARTICLES, _MOVES = 500, 5
_DRAWS = 20_000


@dataclass(frozen=True)
class Answer:
    """Weighted points, what they cost, and what the method says of them.

    Attributes:
        points: One row per draw.
        weights: Their weights, which sum to one.
        evaluations: How many log densities were evaluated.
        trusted: What the method says; None if it says nothing.

    Example:
        >>> Answer(np.zeros((2, 1)), np.full(2, 0.5), 100, None).trusted is None
        True
    """

    points: np.ndarray
    weights: np.ndarray
    evaluations: int
    trusted: bool | None


class _Counted:
    """A function of points that counts the rows it is given."""

    def __init__(self, function: Callable[[np.ndarray], np.ndarray]):
        self.function = function
        self.rows = 0

    def __call__(self, points: np.ndarray) -> np.ndarray:
        points = np.asarray(points, np.float64)
        rows = points.reshape(-1, points.shape[-1])
        self.rows += len(rows)
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.function(rows)
        return np.where(np.isfinite(values), values, -np.inf).reshape(points.shape[:-1])


def _equal(points: np.ndarray) -> np.ndarray:
    return np.full(len(points), 1 / len(points))


def ask_tell(simulator: Simulator, seed: int) -> Answer:
    """Points asked for in batches, from the prior on, until the verdict trusts them."""
    like = {name: jnp.zeros(()) for name in simulator.names}
    guide = softcvi.guides.full_rank(like)
    session = AskTellSession(jax.random.key(seed), guide, budget=_BUDGET)
    log_density = _Counted(simulator.log_density)
    while session.remaining:
        asked = session.ask(_BATCH)
        session.tell(log_density(_rows(simulator, asked)))
        if session.verdict.trusted:
            break
    sample = session.importance()
    weights = np.exp(sample.log_weights)
    points, trusted = _rows(simulator, sample.draws), session.verdict.trusted
    return Answer(points, weights / weights.sum(), session.evaluations, trusted)


def fit(simulator: Simulator, seed: int) -> Answer:
    """``softcvi.fit`` at its defaults, which is made for cheap evaluations."""
    log_density = _Counted(simulator.log_density)
    target = from_callable(
        lambda x: log_density(_rows(simulator, x)),
        like={name: np.zeros(()) for name in simulator.names},
        vectorized=True,
    )
    result = softcvi.fit(jax.random.key(seed), target, progress=False)
    points = _rows(simulator, result.sample(jax.random.key(seed + 1), _DRAWS))
    trusted = result.verdict.trusted
    return Answer(points, _equal(points), log_density.rows, trusted)


def smc(simulator: Simulator, seed: int) -> Answer:
    """BlackJAX: adaptive tempering from the prior, random-walk moves."""
    import blackjax
    from blackjax.smc import extend_params, resampling

    log_likelihood = _Counted(simulator.log_likelihood)

    def on_host(x):
        shape = jax.ShapeDtypeStruct((), x.dtype)
        values = lambda rows: log_likelihood(rows).astype(rows.dtype)  # noqa: E731
        return jax.pure_callback(values, shape, x, vmap_method="expand_dims")

    walk = blackjax.mcmc.random_walk.build_additive_step()

    def move(key, state, log_density, factor):
        def step(key, position):
            return factor @ jax.random.normal(key, position.shape)

        return walk(key, state, log_density, step)

    def factor_of(key, state, info):
        covariance = jnp.cov(state.particles.T) + 1e-8 * jnp.eye(simulator.size)
        factor = 2.38 / jnp.sqrt(simulator.size) * jnp.linalg.cholesky(covariance)
        return extend_params({"factor": factor})

    algorithm = blackjax.inner_kernel_tuning(
        smc_algorithm=blackjax.adaptive_tempered_smc,
        logprior_fn=lambda x: jnp.sum(jax.scipy.stats.norm.logpdf(x)),
        loglikelihood_fn=on_host,
        mcmc_step_fn=move,
        mcmc_init_fn=blackjax.mcmc.random_walk.init,
        resampling_fn=resampling.systematic,
        mcmc_parameter_update_fn=factor_of,
        initial_parameter_value=extend_params({"factor": jnp.eye(simulator.size)}),
        target_ess=0.5,
        num_mcmc_steps=_MOVES,
    )
    key = jax.random.key(seed)
    start = jax.random.normal(key, (_PARTICLES, simulator.size))
    state, step = algorithm.init(start), jax.jit(algorithm.step)
    while state.sampler_state.tempering_param < 1:
        key, step_key = jax.random.split(key)
        state, _ = step(step_key, state)
    points = np.asarray(state.sampler_state.particles)
    weights = np.asarray(state.sampler_state.weights)
    return Answer(points, weights / weights.sum(), log_likelihood.rows, None)


def vbmc(simulator: Simulator, seed: int) -> Answer:
    """PyVBMC at its defaults: a Gaussian process for the log density."""
    from pyvbmc import VBMC

    log_density = _Counted(simulator.log_density)
    d = simulator.size
    rng = np.random.default_rng(seed)
    # PyVBMC draws from the global generator.
    np.random.seed(seed)  # noqa: NPY002
    algorithm = VBMC(
        lambda x: log_density(np.atleast_2d(x))[0],
        rng.normal(size=(1, d)),
        np.full((1, d), -np.inf),
        np.full((1, d), np.inf),
        np.full((1, d), -1.0),
        np.full((1, d), 1.0),
        options={"display": "off"},
    )
    with contextlib.redirect_stdout(None):
        found, results = algorithm.optimize()
    points, _ = found.sample(_DRAWS)
    trusted = bool(results["success_flag"])
    return Answer(points, _equal(points), log_density.rows, trusted)


def _rows(simulator: Simulator, named: Mapping) -> np.ndarray:
    columns = [np.asarray(named[name], np.float64) for name in simulator.names]
    return np.stack(columns, axis=-1)


METHODS: Mapping[str, Callable[[Simulator, int], Answer]] = {
    "ask and tell": ask_tell,
    "fit": fit,
    "SMC": smc,
    "PyVBMC": vbmc,
}
