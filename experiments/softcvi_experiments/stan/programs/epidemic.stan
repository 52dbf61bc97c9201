// An outbreak by differential equations, in the syntax of old.
functions {
  real[] flows(real t, real[] y, real[] theta, real[] x_r, int[] x_i) {
    real new_cases = theta[1] * y[1] * y[2] / x_i[1];
    real gone = theta[2] * y[2];
    return {-new_cases, new_cases - gone, gone};
  }
}
data {
  int<lower=1> T;
  real y0[3];
  real t0;
  real ts[T];
  int N;
  int cases[T];
}
transformed data {
  real x_r[0];
  int x_i[1] = {N};
}
parameters {
  real<lower=0> beta;
  real<lower=0> gamma;
  real<lower=0> phi_inv;
}
transformed parameters {
  real y[T, 3];
  real phi = 1 / phi_inv;
  {
    real theta[2];
    theta[1] <- beta;
    theta[2] <- gamma;
    y = integrate_ode_rk45(flows, y0, t0, ts, theta, x_r, x_i);
  }
}
model {
  beta ~ normal(2, 1);
  gamma ~ normal(0.4, 0.5);
  phi_inv ~ exponential(5);
  cases ~ neg_binomial_2(col(to_matrix(y), 2), phi);
}
generated quantities {
  real R0 = beta / gamma;
}
