data {
  int<lower=0> N;
  array[N] int<lower=0> y;
  vector[N] before;
  vector[N] treatment;
  vector[N] log_exposure;
}
parameters {
  real alpha;
  vector[2] beta;
  real<lower=0> reciprocal_dispersion;
}
model {
  alpha ~ normal(3, 2);
  beta ~ normal(0, 2);
  reciprocal_dispersion ~ exponential(1);
  y ~ neg_binomial_2_log(alpha + beta[1] * before + beta[2] * treatment
                         + log_exposure, reciprocal_dispersion);
}
