import gzip
import json
import zipfile

import numpy as np
import pytest

from softcvi.adapters.stan._data import as_json, read_data
from softcvi.adapters.stan._old_syntax import modernised
from softcvi.adapters.stan._r_dump import parse_r_dump
from softcvi.adapters.stan._rounding import exact, parameter_types
from softcvi.adapters.stan._stanc import Input, Source, as_source, translate
from softcvi.adapters.stan._target import classify


def test_files_of_every_kind_hold_the_same(tmp_path):
    values = {"N": 2, "y": [1.5, 2.5]}
    (tmp_path / "a.json").write_text(json.dumps(values))
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(json.dumps(values).encode()))
    with zipfile.ZipFile(tmp_path / "a.json.zip", "w") as archive:
        archive.writestr("a.json", json.dumps(values))
    (tmp_path / "a.data.R").write_text("N <- 2L\ny <-\nc(1.5, 2.5)\n")
    for name in ("a.json", "a.json.gz", "a.json.zip", "a.data.R"):
        read = read_data(tmp_path / name)
        assert read["N"] == 2, name
        np.testing.assert_array_equal(read["y"], values["y"])
    assert read_data(None) == {}
    with pytest.raises(FileNotFoundError, match="data:"):
        read_data(tmp_path / "absent.json")
    (tmp_path / "wrong.json").write_text("N <- 2")
    with pytest.raises(ValueError, match=r"is not JSON.*\.R"):
        read_data(tmp_path / "wrong.json")
    (tmp_path / "twice.json").write_text('{"y": [1.0], "N": 1, "y": [2.0]}')
    with pytest.raises(ValueError, match=r"twice.json.*'y' is there twice"):
        read_data(tmp_path / "twice.json")


def test_r_dumps():
    text = """
    # a comment
    "N" <- 3L
    `x` <- c(1, -2.5e-1, NA, Inf, -Inf); k <- 1:3
    m <- structure(c(1L, 2L, 3L, 4L, 5L, 6L), .Dim = 2:3)
    named <- structure(c(1, 2), names = c("a", "b"), .Dim = 2L)
    none <- integer(0)
    zeros <- double(2)
    flag = TRUE
    down <- 3:1
    """
    read = parse_r_dump(text)
    assert read["N"] == 3
    np.testing.assert_array_equal(read["x"], [1, -0.25, np.nan, np.inf, -np.inf])
    np.testing.assert_array_equal(read["m"], [[1, 3, 5], [2, 4, 6]])
    np.testing.assert_array_equal(read["k"], [1, 2, 3])
    np.testing.assert_array_equal(read["down"], [3, 2, 1])
    np.testing.assert_array_equal(read["named"], [1, 2])
    assert read["none"].size == 0
    np.testing.assert_array_equal(read["zeros"], [0, 0])
    assert read["flag"] == 1
    with pytest.raises(ValueError, match="cannot read"):
        parse_r_dump("x <- {1}")
    with pytest.raises(ValueError, match="no number"):
        parse_r_dump("x <- rnorm(3)")


def test_data_take_the_declared_types():
    inputs = {
        "N": Input("int", 0),
        "k": Input("int", 1),
        "y": Input("real", 1),
        "X": Input("real", 2),
    }
    data = {
        "N": np.array([3.0]),
        "k": np.array([True, False]),
        "y": 2.0,
        "X": np.eye(2),
        "unused": "text",
    }
    read = json.loads(as_json(data, inputs))
    assert read == {"N": 3, "k": [1, 0], "y": [2.0], "X": [[1.0, 0.0], [0.0, 1.0]]}
    with pytest.raises(ValueError, match=r"needs X, k, y; got N\."):
        as_json({"N": 1}, inputs)
    with pytest.raises(ValueError, match=r"'k' is declared as int.*0\.5"):
        as_json({**data, "k": [1, 0.5]}, inputs)
    with pytest.raises(ValueError, match="'y' must be numbers"):
        as_json({**data, "y": ["a"]}, inputs)


def test_values_in_forms_that_other_programs_write():
    """Numbers as strings, numbers for arrays, empty matrices, pairs and tuples."""
    pair = Input((Input("int", 0), Input("real", 1)), 0)
    inputs = {
        "far": Input("real", 1),
        "one": Input("real", 2),
        "none": Input("real", 2),
        "z": Input("complex", 0),
        "zs": Input("complex", 1),
        "pair": pair,
        "pairs": Input(pair.type, 1),
    }
    data = {
        "far": ["Inf", "-Infinity", "NaN", "2"],
        "one": 3,
        "none": [],
        "z": 1 - 2j,
        "zs": np.array([1j, 2.0]),
        "pair": (2.0, [0.5]),
        "pairs": [{"1": 2, "2": 0.5}],
    }
    read = json.loads(as_json(data, inputs))
    assert read["far"][:2] == [np.inf, -np.inf]
    assert np.isnan(read["far"][2])
    assert read["far"][3] == 2
    assert read["one"] == [[3.0]]
    assert read["none"] == []
    assert read["z"] == [1.0, -2.0]
    assert read["zs"] == [[0.0, 1.0], [2.0, 0.0]]
    assert read["pair"] == {"1": 2, "2": [0.5]}
    assert read["pairs"] == [{"1": 2, "2": [0.5]}]


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ([1.0, None], Input("real", 1), "missing values.*Leave these rows out"),
        ([1.0, "NaN"], Input("int", 1), "declared as int.*nan"),
        (3e9, Input("int", 0), "3000000000.*end at 2147483647"),
        (np.ones((3, 1)), Input("real", 1), r"1 axis; got.*\(3, 1\), with 2 axes"),
        ([1, 2, 3], Input((Input("int", 0), Input("int", 0)), 0), "tuple of 2 parts"),
    ],
)
def test_values_that_cannot_be_what_the_program_declares(value, kind, message):
    with pytest.raises(ValueError, match=f"data: 'x'.*{message}"):
        as_json({"x": value}, {"x": kind})


def test_an_archive_with_files_of_the_system_beside_the_data(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.json.zip", "w") as archive:
        archive.writestr("__MACOSX/._a.json", "nothing")
        archive.writestr("folder/", "")
        archive.writestr("folder/a.json", '{"N": 2}')
    assert read_data(tmp_path / "a.json.zip") == {"N": 2}
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("a.json", "{}")
        archive.writestr("b.json", "{}")
    with pytest.raises(ValueError, match="must hold one file; it holds 2"):
        read_data(tmp_path / "b.zip")


def test_a_program_newer_than_the_compiler_is_told_so():
    pytest.importorskip("httpstan")
    program = "parameters { sum_to_zero_vector[3] x; } model { x ~ normal(0, 1); }"
    message = r"(?s)sum_to_zero_vector \(Stan 2\.36\).*httpstan.*BridgeStan"
    with pytest.raises(ValueError, match=message):
        translate(Source(program))


def test_old_assignments_and_densities():
    old = """functions { real f_log(real y, real mu) { return -square(y - mu); }
  real c_log(int k, real p) { return k * p; } real half_log(real x) { return x; } }
parameters { real a; }
model { if (a<-1) reject("a"); a ~ f(1); 3 ~ c(a); lp__ <- lp__ - a * a;
  increment_log_prob(f_log(a, 2)); }"""
    new = modernised(old)
    for part in (
        "real f_lpdf(real y, real mu)",
        "real c_lpmf(int k, real p)",
        "real half_log(real x)",
        "if (a<-1)",
        "target += - a * a;",
        "target += (f_lpdf(a | 2));",
    ):
        assert part in new, part
    pytest.importorskip("httpstan")
    assert translate(Source(old)).types == {"a": "real"}


@pytest.mark.parametrize("size", ["array[2] real y;", "real y[2];"])
def test_functions_of_a_program_may_have_names_that_are_stans_now(size):
    """Stan 2.27 brought ``quantile``, Stan 2.29 ``loglogistic``."""
    pytest.importorskip("httpstan")
    program = f"""functions {{ // quantile
  real quantile(vector x, real p) {{ return p * sum(x); }}
  real loglogistic_lpdf(real x, real a, real b) {{ return -square(x - a) / b; }} }}
data {{ {size} }} parameters {{ vector[2] a; }} model {{
  y[1] ~ loglogistic(quantile(a, 0.5), 1);
  target += loglogistic_lpdf(y[2] | a[1], 2); }}"""
    cpp = translate(Source(program)).cpp
    assert "quantile_own(" in cpp
    assert "loglogistic_own_lpdf<" in cpp


def test_of_an_old_program_both_messages_are_told():
    pytest.importorskip("httpstan")
    program = "data { real y[2]; } parameters { real a; } model { y ~ normal(b, 1); }"
    with pytest.raises(ValueError, match=r"(?s)array.*Rewritten.*'b' not in scope"):
        translate(Source(program))


def test_included_files_are_those_beside_the_program(tmp_path):
    pytest.importorskip("httpstan")
    text = "functions {\n#include f.stan\n}\nparameters { real x; }\nmodel { x ~ f(); }"
    with pytest.raises(ValueError, match="give the path of the program"):
        translate(Source(text))
    (tmp_path / "model.stan").write_text(text)
    (tmp_path / "f.stan").write_text("real f_lpdf(real x) { return -square(x); }")
    assert translate(as_source(tmp_path / "model.stan")).types == {"x": "real"}


def test_old_syntax():
    old = """
data { # sizes
  int<lower=1> N; int y[N, 2]; // int z[N];
  vector<lower=0, upper=N>[N] x[2]; }
parameters { real a[max({1, N})]; real b; }
model { real s; s <- 0; for (i in 1:N) s <- s + a[i];
  increment_log_prob(normal_log(s, 0, 1)); a[1] ~ normal(0, 1); }
"""
    new = modernised(old)
    for part in (
        "// sizes",
        "array[N, 2] int y;",
        "// int z[N];",
        "array[2] vector<lower=0, upper=N>[N] x;",
        "array[max({1, N})] real a;",
        "s = s + a[i];",
        "target += (normal_lpdf(s | 0, 1));",
        "a[1] ~ normal(0, 1)",
    ):
        assert part in new, part
    for before, after in {
        "fabs(x)": "abs(x)",
        "if_else(a > f(1, 2), b, if_else(c, d, e))": (
            "((a > f(1, 2)) ? (b) : (((c) ? (d) : (e))))"
        ),
        "normal_log(f(y, 1), mu[1, 2], s)": "normal_lpdf(f(y, 1) | mu[1, 2], s)",
        "poisson_log(3, x)": "poisson_lpmf(3 | x)",
        "exp_mod_normal_log(y, a, b, c)": "exp_mod_normal_lpdf(y | a, b, c)",
        "weibull_ccdf_log(t, a, b)": "weibull_lccdf(t | a, b)",
        "normal_cdf(x, 0, 1)": "normal_cdf(x | 0, 1)",
        "normal_lpdf(x | 0, 1)": "normal_lpdf(x | 0, 1)",
        "cov_exp_quad(x, a, r)": "gp_exp_quad_cov(x, a, r)",
    }.items():
        assert modernised(f"z = {before};") == f"z = {after};"
    assert modernised("y ~ poisson_log(a, fabs(b));") == "y ~ poisson_log(a, abs(b));"
    heads = "functions { real[] f(real t, real[] y, int[,] k, vector[] v) { } }"
    assert modernised(heads) == (
        "functions { array[] real f(real t, array[] real y, array[,] int k, "
        "array[] vector v) { } }"
    )
    current = "data { array[3] real y; matrix[2, 2] m; } model { y[1] ~ normal(0, 1); }"
    assert modernised(current) == current


def test_generated_quantities_by_group():
    data = {"y": np.zeros(3), "z": np.zeros((2, 2)), "N": 3}
    groups = classify(
        {
            "log_lik": (3,),
            "y_rep": (3,),
            "z_tilde": (2, 2),
            "mean_y": (),
            "x_new": (5,),
        },
        data,
    )
    assert groups.log_likelihood == {"y": "log_lik"}
    assert groups.predictive == {"y": "y_rep", "z": "z_tilde", "x_new": "x_new"}
    assert groups.observed == ("y", "z")
    both = classify({"log_lik_y": (3,), "log_lik_z": (2,)}, data)
    assert both.log_likelihood == {"y": "log_lik_y", "z": "log_lik_z"}
    assert classify({"log_lik": (4,)}, data).log_likelihood == {"log_lik": "log_lik"}
    nothing = classify({"prep": (), "llama": (3,)}, data)
    assert nothing.log_likelihood == {}
    assert nothing.observed == ()


def test_rounded_parameters_fulfil_their_constraints_again():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), size=5).astype(np.float32).astype(float)
    np.testing.assert_allclose(exact(p, "simplex").sum(-1), 1, rtol=1e-14)
    a = rng.normal(size=(3, 3))
    covariance = (a @ a.T).astype(np.float32).astype(float)
    scale = np.sqrt(np.diag(covariance))
    correlation = exact(covariance / np.outer(scale, scale), "corr_matrix")
    np.testing.assert_array_equal(np.diag(correlation), 1)
    np.testing.assert_array_equal(correlation, correlation.T)
    factor = exact(np.linalg.cholesky(correlation) * 1.001, "cholesky_factor_corr")
    np.testing.assert_allclose((factor**2).sum(1), 1, rtol=1e-14)
    np.testing.assert_array_equal(exact(a, "matrix"), a)
    text = "parameters {\n  array[2] simplex[K] p;\n  vector<lower=0>[3] v;\n}\n"
    assert parameter_types(text) == {"p": "simplex", "v": "vector"}
