data {
  int<lower=1> N;
  int<lower=1> J;
  array[N] int<lower=1, upper=J> group;
  vector[N] x;
  vector[N] y;
}
parameters {
  vector[2] gamma;
  cholesky_factor_corr[2] L;
  vector<lower=0>[2] tau;
  matrix[2, J] z;
  real<lower=0> sigma;
}
transformed parameters {
  matrix[J, 2] beta = rep_matrix(gamma', J) + (diag_pre_multiply(tau, L) * z)';
}
model {
  gamma ~ normal(0, 5);
  tau ~ exponential(1);
  L ~ lkj_corr_cholesky(2);
  to_vector(z) ~ std_normal();
  sigma ~ exponential(1);
  y ~ normal(beta[group, 1] + beta[group, 2] .* x, sigma);
}
generated quantities {
  real correlation = multiply_lower_tri_self_transpose(L)[1, 2];
}
