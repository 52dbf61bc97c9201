// Item response with difficulties that sum to zero and abilities explained by covariates.
functions {
  matrix scales(matrix x) {
    matrix[2, cols(x)] out;
    for (k in 1:cols(x)) {
      out[1, k] = mean(x[ : , k]);
      out[2, k] = sd(x[ : , k]);
      if (out[2, k] == 0) {
        out[1, k] = 0;
        out[2, k] = 1;
      }
    }
    return out;
  }
}
data {
  int<lower=1> I;
  int<lower=1> J;
  int<lower=1> N;
  array[N] int<lower=1, upper=I> ii;
  array[N] int<lower=1, upper=J> jj;
  array[N] int<lower=0, upper=1> y;
  int<lower=1> K;
  matrix[J, K] W;
}
transformed data {
  matrix[2, K] adjust = scales(W);
  matrix[J, K] W_adjusted;
  for (k in 1:K)
    for (j in 1:J) W_adjusted[j, k] = (W[j, k] - adjust[1, k]) / adjust[2, k];
}
parameters {
  vector<lower=0>[I] alpha;
  vector[I - 1] beta_free;
  vector[J] theta;
  vector[K] lambda_adjusted;
}
transformed parameters {
  vector[I] beta;
  beta[1 : (I - 1)] = beta_free;
  beta[I] = -1 * sum(beta_free);
}
model {
  alpha ~ lognormal(1, 1);
  target += normal_lpdf(beta | 0, 3);
  lambda_adjusted ~ student_t(3, 0, 1);
  theta ~ normal(W_adjusted * lambda_adjusted, 1);
  y ~ bernoulli_logit(alpha[ii] .* theta[jj] - beta[ii]);
}
