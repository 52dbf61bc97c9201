// Losses of insurance by cohort and age, growing along one curve to a share of the premium.
functions {
  real growth_factor_weibull(real t, real omega, real theta) {
    return 1 - exp(-(t / theta) ^ omega);
  }
  real growth_factor_loglogistic(real t, real omega, real theta) {
    real pow_t_omega = t ^ omega;
    return pow_t_omega / (pow_t_omega + theta ^ omega);
  }
}
data {
  int<lower=0, upper=1> growthmodel_id;
  int n_data;
  int n_time;
  int n_cohort;
  array[n_data] int cohort_id;
  array[n_data] int t_idx;
  array[n_time] real<lower=0> t_value;
  array[n_cohort] real premium;
  array[n_data] real loss;
}
parameters {
  real<lower=0> omega;
  real<lower=0> theta;
  
  array[n_cohort] real<lower=0> LR;
  
  real mu_LR;
  real<lower=0> sd_LR;
  
  real<lower=0> loss_sd;
}
transformed parameters {
  array[n_time] real gf;
  array[n_data] real lm;
  
  for (i in 1 : n_time) {
    gf[i] = growthmodel_id == 1
            ? growth_factor_weibull(t_value[i], omega, theta)
            : growth_factor_loglogistic(t_value[i], omega, theta);
  }
  
  for (i in 1 : n_data) {
    lm[i] = LR[cohort_id[i]] * premium[cohort_id[i]] * gf[t_idx[i]];
  }
}
model {
  mu_LR ~ normal(0, 0.5);
  sd_LR ~ lognormal(0, 0.5);
  
  LR ~ lognormal(mu_LR, sd_LR);
  
  loss_sd ~ lognormal(0, 0.7);
  
  omega ~ lognormal(0, 0.5);
  theta ~ lognormal(0, 0.5);
  
  for (i in 1 : n_data) {
    loss[i] ~ normal(lm[i], (loss_sd * premium[cohort_id[i]]));
  }
}
generated quantities {
  array[n_cohort] real mu_LR_exp;
  array[n_cohort, n_time] real loss_sample;
  array[n_cohort, n_time] real loss_prediction;
  array[n_cohort, n_time] real step_ratio;
  array[n_data] real ppc_minLR;
  real EFC;
  
  mu_LR_exp[1] = exp(mu_LR);
  for (i in 2 : n_cohort) mu_LR_exp[i] = exp(mu_LR);
  for (i in 1 : n_data) ppc_minLR[i] = min(LR);
  
  for (i in 1 : n_cohort) {
    for (j in 1 : n_time) {
      loss_sample[i, j] = LR[i] * premium[i] * gf[j];
      step_ratio[i, j] = 1.0;
      loss_prediction[i, j] = loss_sample[i, j];
    }
  }
  for (i in 1 : n_data) {
    loss_prediction[cohort_id[i], t_idx[i]] = loss[i];
  }
  for (i in 1 : n_cohort) {
    for (j in 2 : n_time) {
      step_ratio[i, j] = gf[j] / gf[j - 1];
    }
  }
  EFC = 0;
  for (i in 1 : n_cohort) EFC = EFC + loss_prediction[i, n_time];
}
