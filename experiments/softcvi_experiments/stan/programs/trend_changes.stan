// A piecewise linear trend with seasons, as used in forecasts.
functions {
  matrix changes_at(vector t, vector t_change, int T, int S) {
    matrix[T, S] A = rep_matrix(0, T, S);
    for (i in 1:T)
      for (s in 1:S)
        if (t[i] >= t_change[s]) A[i, s] = 1;
    return A;
  }
}
data {
  int T;
  int<lower=1> K;
  vector[T] t;
  vector[T] y;
  int S;
  vector[S] t_change;
  matrix[T, K] X;
  vector[K] sigmas;
  real<lower=0> tau;
}
transformed data {
  matrix[T, S] A = changes_at(t, t_change, T, S);
}
parameters {
  real k;
  real m;
  vector[S] delta;
  real<lower=0> sigma_obs;
  vector[K] beta;
}
model {
  k ~ normal(0, 5);
  m ~ normal(0, 5);
  delta ~ double_exponential(0, tau);
  sigma_obs ~ normal(0, 0.5);
  beta ~ normal(0, sigmas);
  y ~ normal((k + A * delta) .* t + (m + A * (-t_change .* delta)) + X * beta, sigma_obs);
}
