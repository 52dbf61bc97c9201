// Logistic regression with a distance in metres.
data {
  int<lower=0> N;
  array[N] int<lower=0, upper=1> switched;
  vector[N] distance;
  vector[N] arsenic;
}
parameters {
  vector[4] beta;
}
model {
  switched ~ bernoulli_logit(beta[1] + beta[2] * distance + beta[3] * arsenic
                             + beta[4] * (distance .* arsenic));
}
