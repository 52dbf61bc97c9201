data {
  int<lower=0> T;
  array[T] real y;
  real<lower=0> sigma1;
}
parameters {
  real mu;
  real<lower=0> alpha0;
  real<lower=0, upper=1> alpha1;
  real<lower=0, upper=1 - alpha1> beta1;
}
model {
  real variance = square(sigma1);
  y[1] ~ normal(mu, sigma1);
  for (t in 2 : T) {
    variance = alpha0 + alpha1 * square(y[t - 1] - mu) + beta1 * variance;
    y[t] ~ normal(mu, sqrt(variance));
  }
}
