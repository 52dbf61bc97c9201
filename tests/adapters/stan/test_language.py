"""One program with all types and solvers of the language, compiled once."""

import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from softcvi.adapters import from_stan
from softcvi.adapters.stan._stanc import as_source, counted, translate
from tests.adapters.stan.programs import needs_compiler

PROGRAM = Path(__file__).with_name("language.stan")
DATA = {
    "N": [3],
    "y": [1.0, 0, "1"],
    "x": [0.1, 0.5, 1],
    "pair": {"1": 2, "2": [0.1, 0.2]},
    "z0": [1.0, -2.0],
    "nothing": [],
    "empty": [],
    "cube": np.arange(12).reshape(2, 3, 2).tolist(),
    "rows": [[1, 2, 3], [4, 5, 6]],
    "bound": 3,
    "far": [1, "Inf", "+inf"],
}


def test_functions_of_solvers_count_their_calls_and_no_others():
    pytest.importorskip("httpstan")
    cpp = translate(as_source(PROGRAM)).cpp
    counting = [line.strip() for line in cpp.splitlines() if "count_call();" in line]
    called = {line.partition("return ")[2].partition("(")[0] for line in counting}
    # Those of reduce_sum and map_rect run on threads of Stan's own.
    assert called == {"", "root", "decay"}
    assert counted("int main;") == "int main;"


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    needs_compiler()
    path = tmp_path_factory.mktemp("data") / "data.json"
    path.write_text(json.dumps(DATA))
    return from_stan(PROGRAM, path)


@pytest.mark.slow
def test_every_type_has_its_shape(target):
    shapes = dict(target.shapes)
    assert "none" not in shapes
    assert shapes["weights"] == (2, 2, 3)
    assert shapes["phi"] == (2, 1)
    assert shapes["L"] == shapes["R"] == (3, 3)
    assert (shapes["zc.real"], shapes["cv.imag"]) == ((), (2,))
    assert (shapes["tp:1"], shapes["tp:2"], shapes["out:1"]) == ((), (2,), ())
    assert shapes["ks"] == (2,)


@pytest.mark.slow
def test_gradients_and_the_way_back(target):
    program = target.program
    rng = np.random.default_rng(0)
    rows, direction = rng.normal(size=(2, 6, program.size))
    values, gradients = program.log_density_and_gradient(rows)
    assert np.all(np.isfinite(values))
    up, down = (program.log_density(rows + h * direction) for h in (1e-6, -1e-6))
    slopes = np.sum(gradients * direction, axis=1)
    np.testing.assert_allclose((up - down) / 2e-6, slopes, rtol=1e-4, atol=1e-4)
    with jax.enable_x64(True):
        draws = jax.vmap(target.describe)({"unconstrained": jnp.asarray(rows)})
        back = jax.vmap(lambda x: target.space.from_model_and_log_det(x)[0])(draws)
        again = jax.vmap(target.describe)(back)
    for name, _ in target.space.layout.shapes:
        np.testing.assert_allclose(again[name], draws[name], atol=1e-8, err_msg=name)


@pytest.mark.slow
def test_a_point_at_which_a_solver_never_ends_is_given_up(target):
    program = target.program
    rows = np.full((2, program.size), 0.1)  # no direction at zero
    assert np.all(np.isfinite(program.log_density(rows)))
    rows[1, 0] = 30.0  # a rate of 1e13, for a method with steps of its inverse
    began = time.perf_counter()
    values = program.log_density(rows)
    assert np.isfinite(values).tolist() == [True, False]
    assert "the solver needs over" in program.last_rejection
    # Without the limit it takes a million steps; the time is that of a busy machine.
    assert time.perf_counter() - began < 10.0
