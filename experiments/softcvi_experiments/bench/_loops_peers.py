"""The loops of other libraries on the problems, as their documentation has them."""

import importlib
from collections.abc import Callable
from unittest import mock

import jax
import jax.numpy as jnp
import optax

from softcvi.adapters import from_numpyro
from softcvi_experiments.bench._contender import Contender
from softcvi_experiments.bench._loops_ours import FLOW, RATE
from softcvi_experiments.bench._problems import Problem


def peer_contenders(problem: Problem, num_particles: int) -> list[Contender]:
    """Every other library that can express the problem.

    All are given K draws per step and Adam at the same rate.

    Args:
        problem: The problem.
        num_particles: K.

    Example:
        >>> from softcvi_experiments.bench._problems import get_problem
        >>> contenders = peer_contenders(get_problem("linear_regression"), 8)
        >>> sorted({contender.package for contender in contenders})
        ['blackjax', 'flowjax', 'numpyro', 'pymc']
    """
    family = "AutoIAFNormal" if problem.guide == "flow" else "AutoNormal"
    found = [
        Contender(
            f"NumPyro SVI, {loss}, {family}{', with bar' if bar else ''}",
            "numpyro",
            _numpyro(problem, loss, family, num_particles, bar),
        )
        for loss in ("Trace_ELBO", "RenyiELBO")
        for bar in (True, False)
    ]
    directions = (True, False) if problem.guide == "flow" else (None,)
    names = {True: ", spline MAF", False: ", spline IAF", None: ""}
    found += [
        Contender(
            f"FlowJAX loop, ElboLoss{names[invert]}{', with bar' if bar else ''}",
            "flowjax",
            _flowjax(problem, num_particles, bar, invert),
        )
        for invert in directions
        for bar in (True, False)
    ]
    if problem.guide == "mean-field":
        label = "BlackJAX meanfield_vi in lax.scan"
        found.append(Contender(label, "blackjax", _blackjax(problem, num_particles)))
    if problem.pymc is not None:
        found.append(Contender("PyMC ADVI", "pymc", _pymc(problem, num_particles)))
    return found


def _piece(problem: Problem) -> int:
    """Steps in one call of a scan, so that one program serves both run lengths."""
    return max(1, problem.steps // 5)


def _numpyro(
    problem: Problem, loss_name: str, family: str, num_particles: int, bar: bool
) -> Callable:
    def make():
        from numpyro import infer, optim
        from numpyro.infer import autoguide

        options = {}
        if problem.guide == "flow":
            options = {"num_flows": FLOW["layers"], "hidden_dims": [FLOW["width"]]}
        guide = getattr(autoguide, family)(problem.model, **options)
        loss = getattr(infer, loss_name)(num_particles=num_particles)
        svi = infer.SVI(problem.model, guide, optim.Adam(RATE), loss)

        def typed(steps: int):
            key = jax.random.key(0)
            result = svi.run(key, steps, *problem.args, progress_bar=bar)
            return jax.block_until_ready(result.losses)

        start = svi.init(jax.random.key(0), *problem.args)
        if bar:
            return _with_bar(svi, start, problem), typed
        arrays = [arg for arg in problem.args if isinstance(arg, jax.Array)]
        rest = [arg for arg in problem.args if not isinstance(arg, jax.Array)]

        # The loop of `svi.run`, which it would compile again in every call.
        @jax.jit
        def piece(state, arrays):
            def body(state, _):
                return svi.update(state, *arrays, *rest)

            return jax.lax.scan(body, state, None, length=_piece(problem))[0]

        def run(steps: int):
            state = start
            for _ in range(steps // _piece(problem)):
                state = piece(state, arrays)
            return jax.block_until_ready(state)

        return run, typed

    return make


def _with_bar(svi, start, problem: Problem) -> Callable[[int], object]:
    """``svi.run`` with its bar, its step compiled once and not in every call."""
    module = importlib.import_module("numpyro.infer.svi")
    kept: dict[str, Callable] = {}

    def jit_once(body):
        return kept.setdefault("step", jax.jit(body))

    def run(steps: int):
        with mock.patch.object(module, "jit", jit_once):
            result = svi.run(jax.random.key(0), steps, *problem.args, init_state=start)
        return jax.block_until_ready(result.losses)

    return run


def _flowjax(
    problem: Problem, num_particles: int, bar: bool, invert: bool | None
) -> Callable:
    def make():
        from flowjax.bijections import RationalQuadraticSpline
        from flowjax.distributions import Normal
        from flowjax.flows import masked_autoregressive_flow
        from flowjax.train import fit_to_key_based_loss
        from flowjax.train.losses import ElboLoss

        target = from_numpyro(problem.model, *problem.args)
        structure = target.structure
        normal = Normal(jnp.zeros(structure.size), jnp.ones(structure.size))
        guide = normal
        if invert is not None:
            spline = RationalQuadraticSpline(knots=FLOW["knots"], interval=5)
            guide = masked_autoregressive_flow(
                jax.random.key(0), base_dist=normal, transformer=spline,
                flow_layers=FLOW["layers"], nn_width=FLOW["width"], invert=invert,
            )  # fmt: skip
        loss = ElboLoss(
            lambda flat: target.log_density(structure.unravel(flat)), num_particles
        )
        optimizer = optax.adam(RATE)

        def run(steps: int):
            return fit_to_key_based_loss(
                jax.random.key(0), guide, loss_fn=loss, steps=steps,
                optimizer=optimizer, show_progress=bar,
            )  # fmt: skip

        return run, None

    return make


def _blackjax(problem: Problem, num_particles: int) -> Callable:
    def make():
        import blackjax

        target = from_numpyro(problem.model, *problem.args)
        # Leave `data` out: BlackJAX would call the density with one argument anyway.
        algorithm = blackjax.meanfield_vi(
            lambda particle: target.log_density(particle), optax.adam(RATE),
            num_samples=num_particles,
        )  # fmt: skip
        start = algorithm.init(target.initial_particle(jax.random.key(0)))

        @jax.jit
        def piece(key, state):
            def body(state, key):
                state, info = algorithm.step(key, state)
                return state, info.elbo

            keys = jax.random.split(key, _piece(problem))
            return jax.lax.scan(body, state, keys)[0]

        def run(steps: int):
            state = start
            for i in range(steps // _piece(problem)):
                state = piece(jax.random.key(i), state)
            return jax.block_until_ready(state)

        return run, None

    return make


def _pymc(problem: Problem, num_particles: int) -> Callable:
    def make():
        import pymc as pm

        assert problem.pymc is not None
        with problem.pymc():
            inference = pm.ADVI(random_seed=0)

        def typed(steps: int):
            inference.fit(
                steps, obj_n_mc=num_particles,
                obj_optimizer=pm.adam(learning_rate=RATE), progressbar=False,
            )  # fmt: skip

        # `refine` goes on with the program that `fit` compiled.
        return lambda steps: inference.refine(steps, progressbar=False), typed

    return make
