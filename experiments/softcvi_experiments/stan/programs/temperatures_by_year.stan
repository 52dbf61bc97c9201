// A trend over calendar years, not centred: intercept and slope are almost one line.
data {
  int<lower=0> N;
  vector[N] year;
  vector[N] temperature;
}
parameters {
  real alpha;
  real beta;
  real<lower=0> sigma;
}
model {
  alpha ~ normal(9, 100);
  beta ~ normal(0, 0.033);
  sigma ~ normal(0, 5);
  temperature ~ normal(alpha + beta * year, sigma);
}
