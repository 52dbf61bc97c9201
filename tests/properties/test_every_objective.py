"""What holds for every objective, negative and divergence, whatever the densities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from softcvi import objectives
from softcvi.objectives import Particles, SoftCVI

K = 6
# Examples are the same in every run; a program is compiled in the first one.
SOME = settings(max_examples=15, deadline=None, derandomize=True, database=None)
NUMBERS = arrays(np.float64, K, elements=st.floats(-20, 20))
DIVERGENCES = [
    objectives.ForwardKL(),
    objectives.ReverseKL(),
    objectives.JensenShannon(),
    objectives.Alpha(0.3),
    objectives.ChiSquared(),
    objectives.FDivergence(lambda t: (jnp.sqrt(t) - 1) ** 2),
]
NEGATIVES = [
    objectives.TemperedProposal(0.5),
    objectives.TemperedPosterior(0.5),
    objectives.FlatNegative(),
    objectives.CustomNegative(lambda values: -0.1 * values[0] ** 2),
]
CASES = {type(d).__name__: SoftCVI(K, divergence=d) for d in DIVERGENCES}
CASES |= {type(n).__name__: SoftCVI(K, negative=n) for n in NEGATIVES}
CASES |= {
    "smoothed": SoftCVI(K, temperature=3.0, label_smoothing=0.1),
    "ELBO": objectives.ELBO(K),
    "SNISForwardKL": objectives.SNISForwardKL(K),
    "low variance": objectives.SNISForwardKL(K, low_variance=True),
    "WithModelTerm": objectives.WithModelTerm(SoftCVI(K)),
}
# Their losses are averages of log densities, and move with these.
MOVING = ("ELBO", "WithModelTerm")


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def of_one(objective, log_p, log_q, values, starting):
    def loss(log_q):
        fixed = jax.lax.stop_gradient(log_q)
        particles = Particles(values[:, None], log_p, log_q, fixed)
        return objective.value(particles, starting)

    (value, info), gradient = jax.value_and_grad(loss, has_aux=True)(log_q)
    return value, gradient, (info.excess, info.label_ess)


@jax.jit
def of_all(log_p, *rest):
    """Of every case by its name, in one program."""
    with jax.default_matmul_precision("highest"):
        return {name: of_one(case, log_p, *rest) for name, case in CASES.items()}


def test_every_exported_part_is_here(exported):
    assert exported(objectives, objectives.AbstractDivergence) == set(
        map(type, DIVERGENCES)
    )
    assert exported(objectives, objectives.AbstractNegative) == set(
        map(type, NEGATIVES)
    )
    assert exported(objectives, objectives.AbstractObjective) == set(
        map(type, CASES.values())
    )


@given(
    numbers=st.tuples(NUMBERS, NUMBERS, NUMBERS),
    constant=st.floats(-1e6, 1e6),
    order=st.permutations(range(K)),
    starting=st.booleans(),
)
@SOME
def test_neither_a_constant_nor_the_order_matters(numbers, constant, order, starting):
    log_p, *rest = numbers
    order = np.array(order)
    plain = of_all(*numbers, starting)
    moved = of_all(log_p + constant, *rest, starting)
    others = of_all(*(x[order] for x in numbers), starting)
    for name, (loss, gradient, report) in plain.items():
        shift = constant if name in MOVING else 0.0
        # Adding 1e6 rounds at 1e-10; divergences are as steep as e^20 here.
        scale = 1.0 + np.abs(gradient).max() + abs(float(loss))
        far, again = 1e-6 * scale, 1e-9 * scale
        np.testing.assert_allclose(moved[name][0] + shift, loss, atol=far, err_msg=name)
        np.testing.assert_allclose(moved[name][1], gradient, atol=far, err_msg=name)
        np.testing.assert_allclose(
            moved[name][2], report, rtol=1e-6, atol=1e-6, err_msg=name
        )
        np.testing.assert_allclose(
            others[name][0], loss, rtol=1e-9, atol=again, err_msg=name
        )
        expected = np.asarray(gradient)[order]
        np.testing.assert_allclose(others[name][1], expected, atol=again, err_msg=name)
        np.testing.assert_allclose(
            others[name][2], report, rtol=1e-6, atol=1e-9, err_msg=name
        )
