data {
  int<lower=0> N;
  vector<lower=0>[N] time;
  array[N] int<lower=0, upper=1> event;
  matrix[N, 2] X;
}
parameters {
  real<lower=0> shape;
  real intercept;
  vector[2] beta;
}
model {
  vector[N] scale = exp(intercept + X * beta);
  shape ~ gamma(2, 1);
  intercept ~ normal(0, 5);
  beta ~ normal(0, 2);
  for (n in 1 : N) {
    if (event[n] == 1) {
      time[n] ~ weibull(shape, scale[n]);
    } else {
      target += weibull_lccdf(time[n] | shape, scale[n]);
    }
  }
}
