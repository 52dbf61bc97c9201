// Varying intercepts, centred, with a predictor for each group.
data {
  int<lower=0> N;
  int<lower=0> J;
  array[N] int<lower=1, upper=J> county;
  vector[N] floor_measure;
  vector[J] log_uranium;
  vector[N] log_radon;
}
parameters {
  vector[J] alpha;
  real gamma0;
  real gamma1;
  real beta;
  real<lower=0> sigma_alpha;
  real<lower=0> sigma_y;
}
model {
  gamma0 ~ normal(0, 10);
  gamma1 ~ normal(0, 10);
  beta ~ normal(0, 10);
  sigma_alpha ~ normal(0, 1);
  sigma_y ~ normal(0, 1);
  alpha ~ normal(gamma0 + gamma1 * log_uranium, sigma_alpha);
  log_radon ~ normal(alpha[county] + beta * floor_measure, sigma_y);
}
