// Flat priors, predictors in raw units, an interaction.
data {
  int<lower=0> N;
  vector[N] score;
  vector<lower=0, upper=1>[N] finished_school;
  vector[N] iq;
}
parameters {
  vector[4] beta;
  real<lower=0> sigma;
}
model {
  sigma ~ cauchy(0, 2.5);
  score ~ normal(beta[1] + beta[2] * finished_school + beta[3] * iq
                 + beta[4] * (finished_school .* iq), sigma);
}
