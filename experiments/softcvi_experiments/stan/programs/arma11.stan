data {
  int<lower=1> T;
  array[T] real y;
}
parameters {
  real mu;
  real phi;
  real theta;
  real<lower=0> sigma;
}
model {
  vector[T] error;
  error[1] = y[1] - (mu + phi * mu);
  for (t in 2 : T) {
    error[t] = y[t] - (mu + phi * y[t - 1] + theta * error[t - 1]);
  }
  mu ~ normal(0, 10);
  phi ~ normal(0, 2);
  theta ~ normal(0, 2);
  sigma ~ cauchy(0, 5);
  error ~ normal(0, sigma);
}
