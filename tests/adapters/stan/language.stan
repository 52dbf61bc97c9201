// The types and functions that programs elsewhere use, all in one program.
functions {
  real part_sum(array[] int slice, int start, int end, vector eta) {
    return bernoulli_logit_lpmf(slice | eta[start:end]);
  }
  vector shard(vector phi, vector theta, data array[] real x_r, data array[] int x_i) {
    return [normal_lpdf(x_r | phi[1], theta[1])]';
  }
  vector root(vector x, vector theta, data array[] real x_r, data array[] int x_i) {
    return [x[1] * x[1] - theta[1]]';
  }
  vector decay(real t, vector y, real k) { return -k * y; }
}
data {
  int<lower=0> N;
  array[N] int<lower=0, upper=1> y;
  vector[N] x;
  tuple(int, array[2] real) pair;
  complex z0;
  array[0] real nothing;
  matrix[0, 3] empty;
  array[2, 3, 2] real cube;
  array[2] vector[3] rows;
  real bound;
  array[N] real<lower=0> far;
}
transformed data {
  real noise = normal_rng(0, 1);
  array[2, 1] real xr = {{0.5}, {1.5}};
  array[2, 1] int xi = {{1}, {2}};
  print("transformed data");
  for (n in 1:N) if (x[n] > 1e6) reject("x is large");
}
parameters {
  vector[0] none;
  real<lower=0> sigma;
  ordered[3] cuts;
  positive_ordered[2] rates;
  unit_vector[3] direction;
  cholesky_factor_corr[3] L;
  cholesky_factor_cov[2] Lc;
  corr_matrix[3] R;
  cov_matrix[2] S;
  row_vector[2] rv;
  real<offset=10, multiplier=5> shifted;
  array[2, 2] simplex[3] weights;
  array[2] vector<lower=0>[1] phi;
  complex zc;
  tuple(real, vector[2]) tp;
  vector<lower=-1, upper=bound>[2] between;
}
transformed parameters {
  array[1] vector[1] sol = ode_rk45(decay, [1.0]', 0.0, {1.0}, sigma);
  vector[1] rt = algebra_solver(root, [1.0]', [sigma]', {0.0}, {0});
  complex_vector[2] cv = [zc, zc * 2]';
}
model {
  sigma ~ lognormal(0, 0.3);
  cuts ~ normal(0, 2);
  rates ~ exponential(1);
  L ~ lkj_corr_cholesky(2);
  R ~ lkj_corr(2);
  to_vector(Lc) ~ normal(0, 1);
  S ~ inv_wishart(5, identity_matrix(2));
  rv ~ normal(0, 1);
  shifted ~ normal(10, 5);
  get_real(zc) ~ normal(get_real(z0), 1);
  get_imag(zc) ~ normal(get_imag(z0), 1);
  tp.1 ~ normal(pair.1, 1);
  tp.2 ~ normal(pair.2, 1);
  for (i in 1:2) {
    phi[i] ~ exponential(1);
    for (j in 1:2) weights[i, j] ~ dirichlet([1.0, 2.0, 3.0]');
  }
  target += reduce_sum(part_sum, y, 1, x * sigma);
  target += sum(map_rect(shard, [0.0]', phi, xr, xi));
  print("in model ", sigma);
}
generated quantities {
  int k = poisson_rng(sigma);
  array[2] int ks = {k, 2 * k};
  tuple(int, real) out = (k, sigma);
}
