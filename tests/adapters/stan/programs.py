"""Stan programs of the tests, and one in NumPy with the same interface."""

import shutil

import numpy as np
import pytest

from softcvi.adapters.stan import AbstractProgram

EIGHT_SCHOOLS = """
data {
  int<lower=0> J;
  array[J] real y;
  array[J] real<lower=0> sigma;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[J] theta_tilde;
}
transformed parameters {
  vector[J] theta = mu + tau * theta_tilde;
}
model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
  theta_tilde ~ normal(0, 1);
  y ~ normal(theta, sigma);
}
"""

# One program for all tests of the interface, since each takes half a minute to compile.
EVERYTHING = """
functions {
  real[] doubled(real[] x) {
    real out[size(x)];
    for (i in 1:size(x)) out[i] <- 2 * x[i];
    return out;
  }
}
data {
  int<lower=0> N;
  real y[N];
}
parameters {
  real<lower=0> sigma;
  simplex[3] p;
  cholesky_factor_corr[2] L;
  matrix[2, 3] m;
  vector[2] v[3];
}
transformed parameters {
  real d[1] = doubled({sigma});
}
model {
  if (sigma > 20) reject("sigma is large: ", sigma);
  y ~ normal(0, sigma);
  sigma ~ normal(0, 5);
  p ~ dirichlet(rep_vector(2, 3));
  L ~ lkj_corr_cholesky(2);
  to_vector(m) ~ normal(0, 1);
  for (i in 1:3) v[i] ~ normal(i, 1);
}
generated quantities {
  vector[N] log_lik;
  real y_rep[N];
  if (sigma > 15) reject("no replicates: ", sigma);
  for (i in 1:N) {
    log_lik[i] = normal_lpdf(y[i] | 0, sigma);
    y_rep[i] = normal_rng(0, sigma);
  }
}
"""


def needs_compiler():
    """Skip the test where a Stan program cannot be compiled."""
    pytest.importorskip("httpstan")
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        pytest.skip("Stan programs need a C++ compiler")


class Gamma(AbstractProgram):
    """A positive parameter with a gamma density and a normal one, as Stan sees them.

    Overflow far out is silent, as it is in compiled programs.
    """

    size = 2
    names = (("rate", "slope"), ("twice",), ("y_rep.1", "y_rep.2", "log_lik"))

    @np.errstate(over="ignore")
    def log_density(self, rows):
        u, slope = rows.T
        return np.where(u > 5, -np.inf, 3 * u - 2 * np.exp(u) - 0.5 * slope**2 / 9)

    @np.errstate(over="ignore")
    def log_density_and_gradient(self, rows):
        u, slope = rows.T
        gradient = np.stack([3 - 2 * np.exp(u), -slope / 9], axis=1)
        return self.log_density(rows), np.where(rows[:, :1] > 5, 0.0, gradient)

    def constrain(self, rows, seeds):
        rate, slope = np.exp(rows[:, 0]), rows[:, 1]
        random = np.stack(
            [np.random.default_rng(int(seed)).normal(size=2) for seed in seeds]
        )
        columns = [rate, slope, 2 * rate, *random.T, -rate]
        return np.stack(columns, axis=1)

    def unconstrain(self, parameters):
        return np.stack([np.log(parameters[:, 0]), parameters[:, 1]], axis=1)


class Hierarchy(AbstractProgram):
    """Normal effects with a positive scale: the model of the adapters' battery."""

    size = 4
    names = (("mu.1", "mu.2", "tau", "theta"), (), ())

    def __init__(self, y):
        self.y = np.asarray(y, np.float64)

    def log_density(self, rows):
        return self.log_density_and_gradient(rows)[0]

    def log_density_and_gradient(self, rows):
        mu, log_tau, theta = rows[:, :2], rows[:, 2], rows[:, 3]
        tau, apart = np.exp(log_tau), theta - mu[:, 0]
        away = self.y[None] - theta[:, None]
        # The Jacobian of exp and the constant of a normal of scale tau cancel.
        value = -0.5 * (np.sum(mu**2, 1) + tau**2 + (apart / tau) ** 2)
        gradient = np.stack(
            [
                -mu[:, 0] + apart / tau**2,
                -mu[:, 1],
                -(tau**2) + (apart / tau) ** 2,
                -apart / tau**2 + away.sum(1),
            ],
            axis=1,
        )
        return value - 0.5 * np.sum(away**2, 1), gradient

    def constrain(self, rows, seeds):
        return np.concatenate([rows[:, :2], np.exp(rows[:, 2:3]), rows[:, 3:]], axis=1)

    def unconstrain(self, parameters):
        back = np.array(parameters, np.float64)
        back[:, 2] = np.log(back[:, 2])
        return back
