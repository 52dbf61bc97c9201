"""NumPyro's guides trained with the start, the rates and the verdict of ``fit``."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from softcvi.adapters.numpyro._guide import NumPyroGuide, numpyro_guide
from softcvi.adapters.numpyro._model import from_numpyro
from softcvi.adapters.numpyro._place import trained_on_normal
from softcvi.adapters.numpyro._target import NumPyroTarget
from softcvi.diagnostics import Verdict
from softcvi.fitting import FitResult, fit
from softcvi.objectives import AbstractObjective
from softcvi.starts import Explore


@dataclasses.dataclass(eq=False)
class SVIFit:
    """A trained NumPyro guide, as NumPyro's ``SVI.run`` returns it and more.

    Attributes:
        params: Parameters of guide and model, as ``guide.sample_posterior`` and
            ``numpyro.infer.Predictive`` take them.
        result: The fit itself, with ``posterior``, ``sample`` and ``summary()``.

    Example:
        >>> import jax, jax.numpy as jnp, numpyro, numpyro.distributions as dist
        >>> from numpyro.infer.autoguide import AutoNormal
        >>> from softcvi.adapters.numpyro import svi
        >>> def model(y):
        ...     mu = numpyro.sample("mu", dist.Normal(0, 10))
        ...     numpyro.sample("y", dist.Normal(mu, 1), obs=y)
        >>> data = jnp.array([1.0, 2.0, 3.0])
        >>> fitted = svi(jax.random.key(0), model, AutoNormal(model), data, steps=300)
        >>> sorted(fitted.params)
        ['mu_auto_loc', 'mu_auto_scale']
    """

    params: dict[str, Any]
    result: FitResult

    @property
    def losses(self) -> np.ndarray:
        """The negative ELBO at the recorded steps."""
        return -np.asarray(self.result.history.elbo)

    @property
    def verdict(self) -> Verdict:
        """Can the answer be trusted, and why."""
        return self.result.verdict


def svi(
    key: PRNGKeyArray,
    model: Callable,
    guide: Callable,
    *args: Any,
    objective: AbstractObjective | None = None,
    steps: int = 10_000,
    learning_rate: float | None = None,
    progress: bool = False,
    **kwargs: Any,
) -> SVIFit:
    """Train a NumPyro guide as ``softcvi.fit`` trains its own.

    The posterior is looked for first and the guide put there: normal AutoGuides by
    their parameters, any other guide by a short training on draws of the normal that
    was found. Then the guide is trained with a rate that decays to zero. The same
    guide with ``SVI(..., loss=SoftCVILoss())`` and a constant rate begins where
    NumPyro puts it, where one label may take all the weight.

    Args:
        key: Random key.
        model: The NumPyro model.
        guide: An AutoGuide of it, or a guide written by hand.
        *args: Arguments of model and guide.
        objective: ``SoftCVI()`` by default, with any proposal, negative or divergence.
        steps: Optimisation steps.
        learning_rate: Peak rate; by default from the scale of the posterior.
        progress: Show a bar on a terminal.
        **kwargs: Keyword arguments of model and guide.

    Example:
        >>> import jax, jax.numpy as jnp, numpyro, numpyro.distributions as dist
        >>> from numpyro.infer.autoguide import AutoMultivariateNormal
        >>> from softcvi.adapters.numpyro import svi
        >>> def model(y):
        ...     mu = numpyro.sample("mu", dist.Normal(0, 10))
        ...     numpyro.sample("y", dist.Normal(mu, 1), obs=y)
        >>> guide, data = AutoMultivariateNormal(model), jnp.array([1.0, 2.0, 3.0])
        >>> fitted = svi(jax.random.key(0), model, guide, data, steps=300)
        >>> bool(abs(fitted.params["auto_loc"][0] - 1.99) < 0.1)
        True
    """
    start_key, place_key, run_key = jax.random.split(key, 3)
    target = from_numpyro(model, *args, decentre=False, **kwargs)
    begun = _placed(start_key, place_key, numpyro_guide(guide, target), target)
    result = fit(
        run_key,
        target,
        begun,
        objective=objective,
        steps=steps,
        learning_rate=learning_rate,
        start=None,
        progress=progress,
    )
    trained = result.posterior.guide
    of_model = result.posterior.target
    # As they were given to the fit.
    assert isinstance(trained, NumPyroGuide)
    assert isinstance(of_model, NumPyroTarget)
    params = {**of_model.model_parameters(), **trained.fitted_params()}
    return SVIFit(params, result)


def _placed(
    start_key: PRNGKeyArray,
    place_key: PRNGKeyArray,
    guide: NumPyroGuide,
    target: NumPyroTarget,
) -> NumPyroGuide:
    if not target.structure.is_continuous:
        return guide
    modes = Explore().find(start_key, target).modes
    if not modes:
        return guide
    mean, covariance = np.asarray(modes[0].mean), np.asarray(modes[0].dense)
    placed = guide.matched(mean, covariance)
    if placed is not None:
        return placed
    moved = trained_on_normal(place_key, guide, mean, covariance)
    return dataclasses.replace(moved, rate=guide.rate_at(covariance))
