// Capture and recapture with data augmentation, a rate of capture for each occasion.
data {
  int<lower=0> M;
  int<lower=0> T;
  int<lower=0, upper=1> y[M, T];
}
transformed data {
  int<lower=0> caught[M];
  int<lower=0> C = 0;
  for (i in 1:M) {
    caught[i] = sum(y[i]);
    if (caught[i] > 0) C += 1;
  }
}
parameters {
  real<lower=0, upper=1> omega;
  vector<lower=0, upper=1>[T] p;
}
model {
  for (i in 1:M) {
    if (caught[i] > 0)
      target += bernoulli_lpmf(1 | omega) + bernoulli_lpmf(y[i] | p);
    else
      target += log_sum_exp(bernoulli_lpmf(1 | omega) + bernoulli_lpmf(y[i] | p),
                            bernoulli_lpmf(0 | omega));
  }
}
generated quantities {
  real missed = exp(sum(log1m(p)));
  int N = C + binomial_rng(M - C, omega * missed / (omega * missed + (1 - omega)));
}
