"""Bayesian linear regression: 51 parameters and an exact posterior."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, PRNGKeyArray, Scalar

from softcvi.guides import VectorGuide, mean_field
from softcvi.targets import DensityTarget
from softcvi_experiments.references import (
    AbstractReferenceSource,
    best_factorised_log_prob,
    draw_linear_regression,
    simulate_linear_regression,
)
from softcvi_experiments.tasks._task import AbstractTask, RunData, run_keys


def linear_regression_log_prob(
    x: dict[str, Array], observed: dict[str, Array]
) -> Scalar:
    """Log density of parameters and data.

    Args:
        x: ``beta`` and ``mu``.
        observed: Covariates ``x`` and observations ``y``.

    Example:
        >>> x = {"beta": jnp.zeros(2), "mu": jnp.array(0.0)}
        >>> observed = {"x": jnp.ones((3, 2)), "y": jnp.zeros(3)}
        >>> round(float(linear_regression_log_prob(x, observed)), 4)
        -5.5136
    """
    # Reduced precision, an accelerator's default, would be seen in the labels.
    highest = jax.lax.Precision.HIGHEST
    mean = jnp.matmul(observed["x"], x["beta"], precision=highest) + x["mu"]
    prior = jnp.sum(norm.logpdf(x["beta"])) + norm.logpdf(x["mu"])
    return prior + jnp.sum(norm.logpdf(observed["y"], mean))


def _like() -> dict[str, Array]:
    return {"beta": jnp.zeros(50), "mu": jnp.zeros(())}


class LinearRegression(AbstractTask):
    """Linear regression with unit priors and noise; new data in every run.

    The guide has 51 independent normals. The best such guide is known: it has the
    posterior's own marginals.

    Example:
        >>> LinearRegression().guide(jr.key(0)).structure.size
        51
    """

    name = "linear_regression"
    title = "Linear regression"
    learning_rate = 2e-3

    def posterior_name(self, run: int) -> str:
        return "linear_regression"

    def data(
        self, key: PRNGKeyArray, runs: list[int], source: AbstractReferenceSource
    ) -> RunData:
        """Simulate data and draw from their exact posteriors.

        Args:
            key: Seed of data and draws.
            runs: The runs' numbers.
            source: Not used: the posterior is exact.
        """
        data_keys, draw_keys = jax.vmap(jr.split, out_axes=1)(run_keys(key, runs))
        with jax.default_matmul_precision("highest"):
            observed = jax.vmap(simulate_linear_regression)(data_keys)
            draws = jax.vmap(draw_linear_regression)(
                draw_keys, observed["x"], observed["y"]
            )
            limit = jax.vmap(best_factorised_log_prob)(observed["x"])
        return RunData(
            observed=observed,
            draws=draws,
            data_set=np.arange(len(runs)),
            names=tuple(f"linear_regression, run {run}" for run in runs),
            limit=np.asarray(limit),
        )

    def target(self, observed: dict[str, Array]) -> DensityTarget:
        return DensityTarget(linear_regression_log_prob, _like(), observed=observed)

    def guide(self, key: PRNGKeyArray) -> VectorGuide:
        return mean_field(_like())
