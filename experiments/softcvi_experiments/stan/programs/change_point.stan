// The year in which a rate changed, summed out.
data {
  real<lower=0> r_early;
  real<lower=0> r_late;
  int<lower=1> T;
  array[T] int<lower=0> y;
}
transformed data {
  real log_uniform = -log(T);
}
parameters {
  real<lower=0> early;
  real<lower=0> late;
}
transformed parameters {
  vector[T] lp = rep_vector(log_uniform, T);
  for (s in 1 : T) {
    for (t in 1 : T) {
      lp[s] += poisson_lpmf(y[t] | t < s ? early : late);
    }
  }
}
model {
  early ~ exponential(r_early);
  late ~ exponential(r_late);
  target += log_sum_exp(lp);
}
generated quantities {
  int change = categorical_logit_rng(lp);
}
