// Two pools of carbon that feed each other, by differential equations: a bent ridge.
functions {
  array[] real two_pool_feedback(real t, array[] real C, array[] real theta,
                                 array[] real x_r, array[] int x_i) {
    real k1 = theta[1];
    real k2 = theta[2];
    real alpha21 = theta[3];
    real alpha12 = theta[4];
    array[2] real dC_dt;
    dC_dt[1] = -k1 * C[1] + alpha12 * k2 * C[2];
    dC_dt[2] = -k2 * C[2] + alpha21 * k1 * C[1];
    return dC_dt;
  }
  
  array[] real evolved_CO2(int N_t, real t0, array[] real ts, real gamma,
                           real totalC_t0, real k1, real k2, real alpha21,
                           real alpha12, data array[] real x_r,
                           data array[] int x_i) {
    array[2] real C_t0; // initial state
    C_t0[1] = gamma * totalC_t0;
    C_t0[2] = (1 - gamma) * totalC_t0;
    
    array[4] real theta;
    theta[1] = k1;
    theta[2] = k2;
    theta[3] = alpha21;
    theta[4] = alpha12;
    
    array[N_t, 2] real C_t;
    C_t = integrate_ode_rk45(two_pool_feedback, C_t0, t0, ts, theta, x_r, x_i);
    
    array[N_t] real eCO2_hat;
    for (t in 1 : N_t) 
      eCO2_hat[t] = totalC_t0 - sum(C_t[t]);
    return eCO2_hat;
  }
}
data {
  real<lower=0> totalC_t0; // initial total carbon
  real t0; // initial time
  int<lower=0> N_t; // number of measurement times
  array[N_t] real<lower=t0> ts; // measurement times
  array[N_t] real<lower=0> eCO2mean; // measured cumulative evolved carbon
}
transformed data {
  array[0] real x_r; // no real data for ODE system
  array[0] int x_i; // no integer data for ODE system
}
parameters {
  real<lower=0> k1; // pool 1 decomposition rate
  real<lower=0> k2; // pool 2 decomposition rate
  real<lower=0> alpha21; // transfer coeff from pool 2 to 1
  real<lower=0> alpha12; // transfer coeff from pool 1 to 2
  real<lower=0, upper=1> gamma; // partitioning coefficient
  real<lower=0> sigma; // observation std dev
}
transformed parameters {
  array[N_t] real eCO2_hat;
  eCO2_hat = evolved_CO2(N_t, t0, ts, gamma, totalC_t0, k1, k2, alpha21,
                         alpha12, x_r, x_i);
}
model {
  // priors
  gamma ~ beta(10, 1); // identifies pools
  k1 ~ normal(0, 1); // weakly informative
  k2 ~ normal(0, 1);
  alpha21 ~ normal(0, 1);
  alpha12 ~ normal(0, 1);
  sigma ~ cauchy(0, 1);
  
  // likelihood     
  for (t in 1 : N_t) 
    eCO2mean[t] ~ normal(eCO2_hat[t], sigma); // normal error
}
