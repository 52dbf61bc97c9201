// One compartment, absorption of first order, elimination by Michaelis and Menten.
functions {
  vector change(real t, vector C, real dose, real k_a, real K_m, real V_m, real V) {
    real in_flow = 0;
    if (t > 0) in_flow = exp(-k_a * t) * dose * k_a / V;
    return [in_flow - V_m / V * C[1] / (K_m + C[1])]';
  }
}
data {
  int<lower=0> N;
  array[N] real<lower=0> times;
  real<lower=0> t0;
  real<lower=0> dose;
  real<lower=0> V;
  vector[N] concentration;
}
transformed data {
  vector[1] C0 = rep_vector(0.0, 1);
}
parameters {
  real<lower=0> k_a;
  real<lower=0> K_m;
  real<lower=0> V_m;
  real<lower=0> sigma;
}
transformed parameters {
  array[N] vector[1] C = ode_bdf(change, C0, t0, times, dose, k_a, K_m, V_m, V);
}
model {
  k_a ~ cauchy(0, 1);
  K_m ~ cauchy(0, 1);
  V_m ~ cauchy(0, 1);
  sigma ~ cauchy(0, 1);
  for (n in 1:N) concentration[n] ~ lognormal(log(C[n, 1]), sigma);
}
