"""What a target made from a model can tell beyond its log density."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from softcvi.targets import AbstractTarget


class AbstractModelTarget(AbstractTarget):
    """A target that knows its data: for predictions, and for ArviZ.

    Everything here is optional; the defaults say that nothing is known.
    """

    def observed_data(self) -> dict[str, np.ndarray]:
        """Observed values by site."""
        return {}

    def constant_data(self) -> dict[str, np.ndarray]:
        """Named arrays of the model that are neither latent nor observed."""
        return {}

    def prior(self, key: PRNGKeyArray) -> dict[str, Array]:
        """One draw of all sites from the prior, observed ones included.

        Empty where the prior is not known.
        """
        return {}

    def log_likelihood(self, x: Any) -> dict[str, Array]:
        """Pointwise log likelihood by observed site, for one draw."""
        return {}

    def predict(self, key: PRNGKeyArray, x: Any) -> dict[str, Array]:
        """One replicate of the observed sites, for one draw."""
        return {}

    def predict_draws(
        self, key: PRNGKeyArray, draws: dict[str, Array]
    ) -> dict[str, Array]:
        """A replicate of the observed sites for each of many draws."""
        n = jax.tree_util.tree_leaves(draws)[0].shape[0]
        return over_draws(self.predict, jax.random.split(key, n), draws)

    def prior_draws(self, key: PRNGKeyArray, n: int) -> dict[str, Array]:
        """Draws of all sites from the prior, observed ones included."""
        return over_draws(self.prior, jax.random.split(key, n))

    def dims(self) -> dict[str, list[str]]:
        """Names of the dimensions of each site, as far as the model names them."""
        return {}

    def coords(self) -> dict[str, np.ndarray]:
        """Coordinate values by dimension."""
        return {}


def over_draws(function, *batched):
    """Apply a function of one draw to a leading axis of draws, compiled."""
    return jax.jit(jax.vmap(function))(*batched)
