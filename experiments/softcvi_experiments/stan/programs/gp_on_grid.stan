// A Gaussian process on a grid by eigenvectors of two covariance matrices.
functions {
  vector kron_mvprod(matrix A, matrix B, vector V) {
    return to_vector(B * to_matrix(V, cols(B), cols(A)) * A');
  }
  
  vector calculate_eigenvalues(vector A, vector B, int n1, int n2,
                               real sigma2) {
    vector[n1 * n2] e;
    int s = 1;
    for (i in 1 : n1) {
      e[s : (s + n2 - 1)] = A[i] * B + sigma2;
      s = s + n2;
    }
    return e;
  }
}
data {
  int<lower=1> n1;
  int<lower=1> n2;
  matrix[n1, 1] x1;
  matrix[n2, 1] x2;
  vector[n1 * n2] y;
}
transformed data {
  matrix[n1, n1] xd1;
  matrix[n2, n2] xd2;
  
  for (i in 1 : n1) {
    xd1[i, i] = 0;
    for (j in (i + 1) : n1) {
      xd1[i, j] = -dot_self(x1[i] - x1[j]);
      xd1[j, i] = xd1[i, j];
    }
  }
  for (i in 1 : n2) {
    xd2[i, i] = 0;
    for (j in (i + 1) : n2) {
      xd2[i, j] = -dot_self(x2[i] - x2[j]);
      xd2[j, i] = xd2[i, j];
    }
  }
}
parameters {
  real<lower=0> var1;
  real<lower=0> bw1;
  real<lower=0> sigma1;
  real<lower=0> bw2;
}
model {
  matrix[n1, n1] Sigma1;
  matrix[n2, n2] Sigma2;
  matrix[n1, n1] Q1;
  matrix[n2, n2] Q2;
  vector[n1] L1;
  vector[n2] L2;
  vector[n1 * n2] eigenvalues;
  
  Sigma1 = var1 * exp(xd1 * bw1);
  for (i in 1 : n1) 
    Sigma1[i, i] = Sigma1[i, i] + .00001;
  Sigma2 = exp(xd2 * bw2);
  for (i in 1 : n2) 
    Sigma2[i, i] = Sigma2[i, i] + .00001;
  
  Q1 = eigenvectors_sym(Sigma1);
  Q2 = eigenvectors_sym(Sigma2);
  L1 = eigenvalues_sym(Sigma1);
  L2 = eigenvalues_sym(Sigma2);
  
  eigenvalues = calculate_eigenvalues(L1, L2, n1, n2, sigma1);
  
  var1 ~ lognormal(0, 1);
  bw1 ~ cauchy(0, 2.5);
  bw2 ~ cauchy(0, 2.5);
  sigma1 ~ lognormal(0, 1);
  
  target += -0.5
            * sum(y
                  .* kron_mvprod(Q1, Q2,
                                 kron_mvprod(Q1', Q2', y) ./ eigenvalues));
  target += -.5 * sum(log(eigenvalues));
}
