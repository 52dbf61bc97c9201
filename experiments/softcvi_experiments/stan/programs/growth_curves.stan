// Lines for each animal, centred, with variances that have inverse gamma priors.
data {
  int<lower=0> J;
  int<lower=0> T;
  array[T] real age;
  real age_mean;
  array[J, T] real weight;
}
parameters {
  array[J] real alpha;
  array[J] real beta;
  real mu_alpha;
  real mu_beta;
  real<lower=0> variance_y;
  real<lower=0> variance_alpha;
  real<lower=0> variance_beta;
}
model {
  mu_alpha ~ normal(0, 100);
  mu_beta ~ normal(0, 100);
  variance_y ~ inv_gamma(0.001, 0.001);
  variance_alpha ~ inv_gamma(0.001, 0.001);
  variance_beta ~ inv_gamma(0.001, 0.001);
  alpha ~ normal(mu_alpha, sqrt(variance_alpha));
  beta ~ normal(mu_beta, sqrt(variance_beta));
  for (j in 1 : J) {
    for (t in 1 : T) {
      weight[j, t] ~ normal(alpha[j] + beta[j] * (age[t] - age_mean),
                            sqrt(variance_y));
    }
  }
}
