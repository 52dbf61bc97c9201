"""One program with everything in it, compiled: the C interface and the cache."""

import multiprocessing
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.adapters import from_pystan, from_stan
from softcvi.adapters.stan import Httpstan, _build
from softcvi.targets._cost import CALLBACK
from tests.adapters.stan.programs import EVERYTHING, needs_compiler

pytestmark = pytest.mark.slow  # C++

Y = [1.0, -2.0, 0.5]
SIZE = 1 + 2 + 1 + 6 + 6


@pytest.fixture(scope="module")
def target():
    needs_compiler()
    return from_stan(EVERYTHING, {"N": 3, "y": Y})


@pytest.fixture
def doubles():
    with jax.enable_x64(True):
        yield


def _log_density(u):
    """The same density by hand, up to a constant."""
    sigma = jnp.exp(u[0])
    out = jax.scipy.stats.norm.logpdf(jnp.array(Y), 0.0, sigma).sum()
    out += jax.scipy.stats.norm.logpdf(sigma, 0.0, 5.0) + u[0]
    # Stan's v: an array of three vectors of two numbers, with means 1, 2, 3.
    out -= 0.5 * jnp.sum(u[4:10] ** 2)
    return out - 0.5 * jnp.sum(
        (u[10:].reshape(3, 2) - jnp.arange(1.0, 4)[:, None]) ** 2
    )


def test_operations_are_counted_and_grow_with_the_data(target):
    again, larger = (
        from_stan(EVERYTHING, {"N": n, "y": [0.5] * n}).operations_of_call
        for n in (3, 3000)
    )
    assert 0 < again == target.operations_of_call < CALLBACK
    assert larger > 5 * again


@pytest.mark.usefixtures("doubles")
def test_values_and_gradients(target):
    rng = np.random.default_rng(0)
    fixed = rng.normal(size=3)
    rows = rng.normal(size=(40, SIZE))
    rows[:, 1:4] = fixed  # the simplex and the factor, whose densities are not ours
    values, gradients = target.program.log_density_and_gradient(rows)
    exact = np.array([_log_density(row) for row in rows])
    np.testing.assert_allclose(values - values[0], exact - exact[0], rtol=1e-10)
    ours = jax.vmap(jax.grad(_log_density))(jnp.asarray(rows))
    keep = np.r_[0, 4:SIZE]
    np.testing.assert_allclose(gradients[:, keep], ours[:, keep], rtol=1e-9)
    np.testing.assert_allclose(target.program.log_density(rows), values, rtol=1e-12)
    hessian = jax.hessian(lambda u: target.log_density({"unconstrained": u}))(rows[0])
    np.testing.assert_allclose(
        hessian[np.ix_(keep, keep)],
        jax.hessian(_log_density)(jnp.asarray(rows[0]))[np.ix_(keep, keep)],
        rtol=1e-4,
        atol=1e-6,
    )


def test_threads_agree_with_one(target):
    program = target.program
    rows = np.random.default_rng(1).normal(size=(500, SIZE))
    expected = program.log_density_and_gradient(rows)
    program._seconds_per_row, program._threads = 1.0, 3
    found = program.log_density_and_gradient(rows)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


def test_names_shapes_and_generated_quantities(target):
    u = jnp.asarray(np.random.default_rng(2).normal(size=(4, SIZE)), jnp.float32)
    draws = jax.vmap(target.describe)({"unconstrained": u})
    shapes = {name: values.shape[1:] for name, values in draws.items()}
    assert shapes == {
        "sigma": (),
        "p": (3,),
        "L": (2, 2),
        "m": (2, 3),
        "v": (3, 2),
        "d": (1,),
    }
    np.testing.assert_allclose(draws["sigma"], np.exp(u[:, 0]), rtol=1e-6)
    np.testing.assert_allclose(draws["d"][:, 0], 2 * draws["sigma"], rtol=1e-6)
    # Stan keeps matrices by column.
    np.testing.assert_allclose(draws["m"][0, :, 0], u[0, 4:6], rtol=1e-6)
    np.testing.assert_allclose(draws["v"][0, 1], u[0, 12:14], rtol=1e-6)
    # Back from draws that were rounded to single precision.
    likelihood = jax.vmap(target.log_likelihood)(draws)["y"]
    expected = jax.scipy.stats.norm.logpdf(jnp.array(Y), 0, draws["sigma"][:, None])
    np.testing.assert_allclose(likelihood, expected, rtol=1e-4)
    key = jax.random.key(0)
    first, second = (target.predict(k, _row(draws, 0))["y"] for k in (key, key))
    np.testing.assert_array_equal(first, second)
    keys = jax.random.split(key, 4)
    replicates = jax.vmap(target.predict)(keys, draws)["y"]
    assert np.unique(replicates).size == 12
    np.testing.assert_array_equal(target.observed_data()["y"], Y)


def _row(draws, i):
    return {name: values[i] for name, values in draws.items()}


def test_rejections_are_counted_and_explained(target):
    before = target.rejections
    rows = np.zeros((3, SIZE))
    rows[1, 0] = np.log(30.0)
    values, gradients = target.program.log_density_and_gradient(rows)
    assert np.isneginf(values).tolist() == [False, True, False]
    np.testing.assert_array_equal(gradients[1], 0)
    assert target.rejections == before + 1
    assert "sigma is large" in target.program.last_rejection
    # NaN is no crash either.
    rows[2] = np.nan
    assert np.isneginf(target.program.log_density(rows)[2])


def test_parameters_outlive_generated_quantities_that_fail(target):
    rows = np.zeros((2, SIZE))
    rows[1, 0] = np.log(16.0)
    out = target.program.constrain(rows, np.zeros(2, np.uint64))
    known = len(target.program.names[0]) + len(target.program.names[1])
    assert np.isfinite(out[0]).all()
    assert np.isfinite(out[1, :known]).all()
    assert np.isnan(out[1, known:]).all()
    np.testing.assert_allclose(out[1, [0, known - 1]], [16.0, 32.0])
    assert "no replicates" in target.program.last_rejection


def test_the_second_time_nothing_is_compiled(target, monkeypatch):
    def compiled(*args):
        raise AssertionError("compiled again")

    monkeypatch.setattr(_build, "_compile", compiled)
    again = from_stan(EVERYTHING, {"N": 1, "y": 4.0}, seed=3)
    assert again.program.size == SIZE
    assert again.seed == 3


def test_mistakes_are_told_in_stans_words():
    pytest.importorskip("httpstan")
    with pytest.raises(ValueError, match=r"(?s)Stan compiler refused.*expected after"):
        from_pystan("parameters { real x } model { }")
    with pytest.raises(ValueError, match="needs N, y; got nothing"):
        from_stan(EVERYTHING)
    with pytest.raises(FileNotFoundError, match="no such file"):
        from_stan("absent.stan")


def test_wrong_data_are_told_in_stans_words(target):
    with pytest.raises(ValueError, match=r"data: Stan refused them.*greater than"):
        from_stan(EVERYTHING, {"N": -1, "y": []})


def test_without_a_compiler_the_remedy_is_named(monkeypatch):
    pytest.importorskip("httpstan")
    monkeypatch.setattr(_build.shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match=r"no C\+\+ compiler.*CXX"):
        from_stan("parameters { real x; } model { x ~ normal(0, 1); }")


def test_a_fit_of_it(target):
    result = softcvi.fit(jax.random.key(0), target, steps=1500, progress=False)
    draws = result.sample(jax.random.key(1), 4000)
    np.testing.assert_allclose(draws["p"].mean(0), 1 / 3, atol=0.02)
    np.testing.assert_allclose(draws["v"].mean(0)[:, 0], [1, 2, 3], atol=0.1)
    np.testing.assert_allclose(draws["m"].std(0), 1, atol=0.1)


def _build_slowly(folder, answers):
    needs = {"N": 3, "y": Y}
    import os

    os.environ["SOFTCVI_CACHE_DIR"] = folder
    answers.put(from_stan(EVERYTHING, needs, progress=False).program.size)


def test_two_processes_build_one_library(tmp_path):
    needs_compiler()
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    workers = [
        context.Process(target=_build_slowly, args=(str(tmp_path), answers))
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    assert [answers.get(timeout=600) for _ in workers] == [SIZE, SIZE]
    for worker in workers:
        worker.join()
    assert len(list((tmp_path / "stan").glob("[!s]*.so"))) == 1


def test_headers_are_precompiled_by_one_compiler_alone(monkeypatch):
    pytest.importorskip("httpstan")
    monkeypatch.setattr(_build, "_said_version", lambda compiler: "clang version 18")
    with pytest.raises(RuntimeError, match=r"precompile: .* is not g\+\+.*CXX"):
        _build.precompiled_header("c++", "-O2", progress=False)


@pytest.mark.slow
def test_headers_compiled_once_serve_a_program(tmp_path, monkeypatch):
    needs_compiler()
    if shutil.which("g++") is None:
        pytest.skip("headers are precompiled by g++ alone")
    monkeypatch.setenv("SOFTCVI_CACHE_DIR", str(tmp_path))
    engine = Httpstan(optimize=False, precompile=True)
    program = "parameters { real x; } model { x ~ normal(1, 2); }"
    target = from_stan(program, engine=engine, progress=False)
    _, gradient = target.program.log_density_and_gradient(np.array([[3.0]]))
    np.testing.assert_allclose(gradient, [[-0.5]])
    assert len(list((tmp_path / "stan").glob("header-*/stan/model/*.gch"))) == 1
