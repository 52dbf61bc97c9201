// Splines for mean and scale, written as programs that are generated are written.
functions {
  /* nothing here */
}
data {
  int<lower=1> N;
  vector[N] Y;
  int Ks;
  matrix[N, Ks] Xs;
  int nb_1;
  array[nb_1] int knots_1;
  matrix[N, knots_1[1]] Zs_1_1;
  int prior_only;
}
transformed data {
}
parameters {
  real Intercept;
  vector[Ks] bs;
  vector[knots_1[1]] zs_1_1;
  vector<lower=0>[nb_1] sds_1;
  real Intercept_sigma;
  vector[knots_1[1]] zs_sigma_1_1;
  vector<lower=0>[nb_1] sds_sigma_1;
}
transformed parameters {
  vector[knots_1[1]] s_1_1;
  vector[knots_1[1]] s_sigma_1_1;
  real lprior = 0;
  s_1_1 = sds_1[1] * zs_1_1;
  s_sigma_1_1 = sds_sigma_1[1] * zs_sigma_1_1;
  lprior += student_t_lpdf(Intercept | 3, -13, 36);
  lprior += student_t_lpdf(sds_1 | 3, 0, 36) - nb_1 * student_t_lccdf(0 | 3, 0, 36);
  lprior += student_t_lpdf(Intercept_sigma | 3, 0, 10);
  lprior += student_t_lpdf(sds_sigma_1 | 3, 0, 36)
            - nb_1 * student_t_lccdf(0 | 3, 0, 36);
}
model {
  if (!prior_only) {
    vector[N] mu = rep_vector(0.0, N);
    vector[N] sigma = rep_vector(0.0, N);
    mu += Intercept + Xs * bs + Zs_1_1 * s_1_1;
    sigma += Intercept_sigma + Zs_1_1 * s_sigma_1_1;
    sigma = exp(sigma);
    target += normal_lpdf(Y | mu, sigma);
  }
  target += lprior;
  target += std_normal_lpdf(zs_1_1);
  target += std_normal_lpdf(zs_sigma_1_1);
}
generated quantities {
  real b_Intercept = Intercept;
}
