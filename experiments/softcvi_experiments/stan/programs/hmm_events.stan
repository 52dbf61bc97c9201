// A hidden Markov model of two positive measurements, states summed out.
data {
  int<lower=0> N;
  int<lower=1> K;
  array[N] real<lower=0> u;
  array[N] real<lower=0> v;
  matrix<lower=0>[K, K] alpha;
}
parameters {
  simplex[K] theta1;
  simplex[K] theta2;
  positive_ordered[K] phi;
  positive_ordered[K] lambda;
}
transformed parameters {
  array[K] simplex[K] theta;
  theta[1] = theta1;
  theta[2] = theta2;
}
model {
  for (k in 1:K) target += dirichlet_lpdf(theta[k] | alpha[k, ]');
  target += normal_lpdf(phi[1] | 0, 1);
  target += normal_lpdf(phi[2] | 3, 1);
  target += normal_lpdf(lambda[1] | 0, 1);
  target += normal_lpdf(lambda[2] | 3, 1);
  {
    array[K] real acc;
    array[N, K] real gamma;
    for (k in 1:K)
      gamma[1, k] = exponential_lpdf(u[1] | phi[k]) + exponential_lpdf(v[1] | lambda[k]);
    for (t in 2:N) {
      for (k in 1:K) {
        for (j in 1:K)
          acc[j] = gamma[t - 1, j] + log(theta[j, k])
                   + exponential_lpdf(u[t] | phi[k]) + exponential_lpdf(v[t] | lambda[k]);
        gamma[t, k] = log_sum_exp(acc);
      }
    }
    target += log_sum_exp(gamma[N]);
  }
}
generated quantities {
  array[N] int<lower=1, upper=K> z_star;
  real log_p_z_star;
  {
    array[N, K] int back;
    array[N, K] real best;
    for (k in 1:K)
      best[1, k] = exponential_lpdf(u[1] | phi[k]) + exponential_lpdf(v[1] | lambda[k]);
    for (t in 2:N) {
      for (k in 1:K) {
        best[t, k] = negative_infinity();
        for (j in 1:K) {
          real logp = best[t - 1, j] + log(theta[j, k])
                      + exponential_lpdf(u[t] | phi[k]) + exponential_lpdf(v[t] | lambda[k]);
          if (logp > best[t, k]) {
            back[t, k] = j;
            best[t, k] = logp;
          }
        }
      }
    }
    log_p_z_star = max(best[N]);
    for (k in 1:K) if (best[N, k] == log_p_z_star) z_star[N] = k;
    for (t in 1:(N - 1)) z_star[N - t] = back[N - t + 1, z_star[N - t + 1]];
  }
}
