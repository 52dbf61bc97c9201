"""This library's loops on the problems."""

import io
from collections.abc import Callable

import jax
from rich.console import Console

import softcvi
from softcvi.adapters import from_numpyro
from softcvi.fitting import Bar, Plateau, paper_optimizer
from softcvi.guides import mean_field, spline_flow
from softcvi_experiments.bench._bare import bare_loop
from softcvi_experiments.bench._contender import Contender
from softcvi_experiments.bench._problems import Problem

FLOW = {"layers": 4, "width": 30, "knots": 10}
RATE = 1e-3


def never_settled() -> Plateau:
    """A stopping rule that does all its work and never stops.

    Example:
        >>> never_settled().threshold < -1e6
        True
    """
    return Plateau(threshold=-1e9)


def visible_bar() -> Bar:
    """A bar that draws as on a terminal, into memory.

    Example:
        >>> visible_bar().console.is_terminal
        True
    """
    return Bar(Console(file=io.StringIO(), force_terminal=True))


def make_guide(problem: Problem, target):
    """The guide that the problem asks for.

    Example:
        >>> from softcvi_experiments.bench._problems import get_problem
        >>> problem = get_problem("eight_schools")
        >>> make_guide(problem, from_numpyro(problem.model, *problem.args)).structure
        Structure(mu: (), tau: (), theta_std: (8,))
    """
    if problem.guide == "flow":
        return spline_flow(
            target,
            key=jax.random.key(0),
            layers=FLOW["layers"],
            width=FLOW["width"],
            knots=FLOW["knots"],
        )
    return mean_field(target)


def our_contenders(problem: Problem, num_particles: int) -> list[Contender]:
    """The whole fit with everything switched on, and the bare loop.

    Args:
        problem: The problem.
        num_particles: K.

    Example:
        >>> from softcvi_experiments.bench._problems import get_problem
        >>> contenders = our_contenders(get_problem("eight_schools"), 8)
        >>> contenders[0].label
        'softcvi fit, SoftCVI, with bar'
    """
    soft, elbo = softcvi.SoftCVI(num_particles), softcvi.ELBO(num_particles)
    whole = [
        Contender(f"softcvi fit, {name}, with bar", "softcvi", _fit(problem, objective))
        for name, objective in (("SoftCVI", soft), ("ELBO", elbo))
    ]
    bare = [
        Contender(f"softcvi bare loop, {name}", "softcvi", _bare(problem, objective))
        for name, objective in (("SoftCVI", soft), ("ELBO", elbo))
    ]
    return whole + bare


def _fit(problem: Problem, objective) -> Callable:
    def make():
        target = from_numpyro(problem.model, *problem.args)
        guide = make_guide(problem, target)

        def run(steps: int):
            return softcvi.fit(
                jax.random.key(0),
                target,
                guide,
                objective=objective,
                steps=steps,
                optimizer=paper_optimizer(RATE),
                start=None,
                stopping=never_settled(),
                progress=visible_bar(),
            )

        return run, None

    return make


def _bare(problem: Problem, objective) -> Callable:
    def make():
        target = from_numpyro(problem.model, *problem.args)
        guide = make_guide(problem, target)
        return bare_loop(target, guide, objective, paper_optimizer(RATE)), None

    return make
