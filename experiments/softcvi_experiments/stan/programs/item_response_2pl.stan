data {
  int<lower=1> I;
  int<lower=1> J;
  int<lower=1> N;
  array[N] int<lower=1, upper=I> item;
  array[N] int<lower=1, upper=J> person;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  vector<lower=0>[I] discrimination;
  vector[I] difficulty;
  vector[J] ability;
  real<lower=0> sigma_difficulty;
}
model {
  discrimination ~ lognormal(0, 0.5);
  sigma_difficulty ~ cauchy(0, 2);
  difficulty ~ normal(0, sigma_difficulty);
  ability ~ std_normal();
  y ~ bernoulli_logit(discrimination[item]
                      .* (ability[person] - difficulty[item]));
}
