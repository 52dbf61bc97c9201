// Gaussian processes for mean and log scale, written as generated programs are.
functions {
  vector gp(data array[] vector x, real sdgp, vector lscale, vector zgp) {
    int Dls = rows(lscale);
    int N = size(x);
    matrix[N, N] cov;
    if (Dls == 1) {
      cov = gp_exp_quad_cov(x, sdgp, lscale[1]);
    } else {
      cov = gp_exp_quad_cov(x[ : , 1], sdgp, lscale[1]);
      for (d in 2 : Dls) cov = cov .* gp_exp_quad_cov(x[ : , d], 1, lscale[d]);
    }
    for (n in 1 : N) cov[n, n] += 1e-12;
    return cholesky_decompose(cov) * zgp;
  }
}
data {
  int<lower=1> N;
  vector[N] Y;
  int<lower=1> Kgp_1;
  int<lower=1> Dgp_1;
  int<lower=1> Nsubgp_1;
  array[N] int<lower=1> Jgp_1;
  array[Nsubgp_1] vector[Dgp_1] Xgp_1;
  int prior_only;
}
parameters {
  real Intercept;
  vector<lower=0>[Kgp_1] sdgp_1;
  array[Kgp_1] vector<lower=0>[1] lscale_1;
  vector[Nsubgp_1] zgp_1;
  real Intercept_sigma;
  vector<lower=0>[Kgp_1] sdgp_sigma_1;
  array[Kgp_1] vector<lower=0>[1] lscale_sigma_1;
  vector[Nsubgp_1] zgp_sigma_1;
}
model {
  vector[N] mu = Intercept + rep_vector(0.0, N);
  vector[N] sigma = Intercept_sigma + rep_vector(0.0, N);
  vector[Nsubgp_1] f = gp(Xgp_1, sdgp_1[1], lscale_1[1], zgp_1);
  vector[Nsubgp_1] g = gp(Xgp_1, sdgp_sigma_1[1], lscale_sigma_1[1], zgp_sigma_1);
  mu += f[Jgp_1];
  sigma += g[Jgp_1];
  for (n in 1 : N) sigma[n] = exp(sigma[n]);
  target += student_t_lpdf(Intercept | 3, -13, 36);
  target += student_t_lpdf(sdgp_1 | 3, 0, 36) - 1 * student_t_lccdf(0 | 3, 0, 36);
  target += normal_lpdf(zgp_1 | 0, 1);
  target += inv_gamma_lpdf(lscale_1[1] | 1.124909, 0.0177);
  target += student_t_lpdf(Intercept_sigma | 3, 0, 10);
  target += student_t_lpdf(sdgp_sigma_1 | 3, 0, 36) - 1 * student_t_lccdf(0 | 3, 0, 36);
  target += normal_lpdf(zgp_sigma_1 | 0, 1);
  target += inv_gamma_lpdf(lscale_sigma_1[1] | 1.124909, 0.0177);
  if (!prior_only) target += normal_lpdf(Y | mu, sigma);
}
generated quantities {
  real b_Intercept = Intercept;
  real b_sigma_Intercept = Intercept_sigma;
}
