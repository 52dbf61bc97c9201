// Linear regression in raw units with flat priors.
data {
  int<lower=0> N;
  int<lower=1> D;
  matrix[N, D] X;
  vector[N] y;
}
parameters {
  vector[D] beta;
  real<lower=0> sigma;
}
model {
  y ~ normal(X * beta, sigma);
}
