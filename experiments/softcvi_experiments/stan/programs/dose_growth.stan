// A growth curve that flattens; bounds in the parameters, a derived scale.
data {
  int<lower=0> N;
  array[N] real x;
  array[N] real Y;
}
parameters {
  real alpha;
  real beta;
  real<lower=0.5, upper=1> lambda;
  real<lower=0> tau;
}
transformed parameters {
  real<lower=0> sigma = 1 / sqrt(tau);
}
model {
  alpha ~ normal(0, 1000);
  beta ~ normal(0, 1000);
  tau ~ gamma(0.0001, 0.0001);
  for (i in 1 : N) {
    Y[i] ~ normal(alpha - beta * pow(lambda, x[i]), sigma);
  }
}
