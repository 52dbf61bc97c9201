data {
  int<lower=1> T;
  int<lower=1> K;
  array[T] real y;
}
parameters {
  simplex[K] initial;
  array[K] simplex[K] transition;
  ordered[K] mu;
  vector<lower=0>[K] sigma;
}
model {
  array[T] vector[K] forward;
  array[K] vector[K] into;
  for (i in 1 : K) {
    for (j in 1 : K) {
      into[j, i] = log(transition[i, j]);
    }
    transition[i] ~ dirichlet(rep_vector(1.5, K));
  }
  mu ~ normal(0, 5);
  sigma ~ gamma(2, 2);
  for (k in 1 : K) {
    forward[1, k] = log(initial[k]) + normal_lpdf(y[1] | mu[k], sigma[k]);
  }
  for (t in 2 : T) {
    for (k in 1 : K) {
      forward[t, k] = log_sum_exp(forward[t - 1] + into[k])
                      + normal_lpdf(y[t] | mu[k], sigma[k]);
    }
  }
  target += log_sum_exp(forward[T]);
}
