data {
  int<lower=1> N;
  int<lower=1> D;
  matrix[N, D] X;
  vector[N] y;
  real<lower=0> scale_global;
}
parameters {
  real beta0;
  real<lower=0> sigma;
  vector[D] z;
  real<lower=0> tau;
  vector<lower=0>[D] lambda;
  real<lower=0> slab;
}
transformed parameters {
  vector[D] beta;
  {
    real c2 = 4 * slab;
    vector[D] shrunk = sqrt(c2 * square(lambda) ./ (c2 + square(tau * lambda)));
    beta = z .* shrunk * tau;
  }
}
model {
  z ~ std_normal();
  lambda ~ student_t(1, 0, 1);
  tau ~ student_t(1, 0, scale_global * sigma);
  slab ~ inv_gamma(2, 2);
  beta0 ~ normal(0, 5);
  sigma ~ normal(0, 2);
  y ~ normal_id_glm(X, beta0, beta, sigma);
}
