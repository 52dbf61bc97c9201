// Counts by area with spatial and unstructured effects, scaled to share one variance.
functions {
  real pairs_lpdf(vector phi, array[] int first, array[] int second) {
    return -0.5 * dot_self(phi[first] - phi[second])
           + normal_lpdf(sum(phi) | 0, 0.001 * num_elements(phi));
  }
}
data {
  int<lower=1> N;
  int<lower=1> E;
  array[E] int<lower=1, upper=N> first;
  array[E] int<lower=1, upper=N> second;
  array[N] int<lower=0> y;
  vector<lower=0>[N] exposure;
  vector[N] x;
  real<lower=0> scaling;
}
transformed data {
  vector[N] log_exposure = log(exposure);
}
parameters {
  real intercept;
  real slope;
  real<lower=0> sigma;
  real<lower=0, upper=1> rho;
  vector[N] theta;
  vector[N] phi;
}
transformed parameters {
  vector[N] effect = sqrt(1 - rho) * theta + sqrt(rho / scaling) * phi;
}
model {
  y ~ poisson_log(log_exposure + intercept + slope * x + sigma * effect);
  phi ~ pairs(first, second);
  intercept ~ std_normal();
  slope ~ std_normal();
  theta ~ std_normal();
  sigma ~ std_normal();
  rho ~ beta(0.5, 0.5);
}
