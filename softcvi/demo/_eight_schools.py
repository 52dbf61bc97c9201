"""Eight schools: a hierarchical model with heavy tails."""

import functools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from flowjax.bijections import Scale
from flowjax.distributions import Transformed
from jax.scipy.stats import cauchy, norm
from jaxtyping import Array, Float, PRNGKeyArray, Scalar
from paramax import NonTrainable

from softcvi.demo._task import DemoTask, Draws, stored
from softcvi.guides import DiagonalNormal, Folded, SiteGuide, StudentT
from softcvi.targets import AbstractSpace, DensityTarget

_SCALE = 5.0


class EightSchoolsSpace(AbstractSpace):
    """Standardised parameters: ``mu / 5``, ``tau / 5`` and ``(theta - mu) / tau``.

    Example:
        >>> space = EightSchoolsSpace()
        >>> u = {"mu": jnp.array(1.0), "tau": jnp.array(2.0), "theta": jnp.ones(8)}
        >>> x, log_det = space.to_model_and_log_det(u)
        >>> float(x["theta"][0])
        15.0
    """

    def to_model_and_log_det(
        self, u: dict[str, Array]
    ) -> tuple[dict[str, Array], Scalar]:
        mu, tau = _SCALE * u["mu"], _SCALE * u["tau"]
        x = {"mu": mu, "tau": tau, "theta": mu + tau * u["theta"]}
        return x, 2 * jnp.log(_SCALE) + 8 * jnp.log(tau)

    def from_model_and_log_det(
        self, x: dict[str, Array]
    ) -> tuple[dict[str, Array], Scalar]:
        u = {
            "mu": x["mu"] / _SCALE,
            "tau": x["tau"] / _SCALE,
            "theta": (x["theta"] - x["mu"]) / x["tau"],
        }
        return u, -2 * jnp.log(_SCALE) - 8 * jnp.log(x["tau"])


def eight_schools_log_prob(
    x: dict[str, Array], observed: dict[str, Float[Array, " 8"]]
) -> Scalar:
    """Log density of parameters and data, in model coordinates.

    Args:
        x: ``mu``, ``tau`` and ``theta``.
        observed: ``y`` and ``sigma``.

    Example:
        >>> x = {"mu": jnp.array(0.0), "tau": jnp.array(5.0), "theta": jnp.zeros(8)}
        >>> observed = {"y": jnp.zeros(8), "sigma": jnp.ones(8)}
        >>> round(float(eight_schools_log_prob(x, observed)), 3)
        -32.861
    """
    tau = x["tau"]
    prior = norm.logpdf(x["mu"], 0.0, _SCALE)
    prior += jnp.log(2.0) + cauchy.logpdf(tau, 0.0, _SCALE)
    schools = jnp.sum(norm.logpdf(x["theta"], x["mu"], tau))
    likelihood = jnp.sum(norm.logpdf(observed["y"], x["theta"], observed["sigma"]))
    return jnp.where(tau > 0, prior + schools + likelihood, -jnp.inf)


def eight_schools_guide(key: PRNGKeyArray) -> SiteGuide:
    """A normal for ``mu``, a folded Student's t for ``tau``, Student's t for schools.

    All of them of standardised parameters.

    Args:
        key: Not used: the guide has a fixed start.

    Example:
        >>> import jax
        >>> eight_schools_guide(jax.random.key(0)).structure.size
        10
    """
    one = jnp.ones(())
    # Location before folding, scale after it: the inner scale stays one.
    folded = eqx.tree_at(lambda t: t.scale, StudentT(5 * one), NonTrainable(one))
    tau = Transformed(Folded(folded), Scale(one))
    return SiteGuide(
        {
            "mu": DiagonalNormal(jnp.zeros(()), one),
            "tau": tau,
            "theta": StudentT(jnp.full(8, 5.0)),
        }
    )


def eight_schools() -> DemoTask:
    """Effects of coaching in eight schools (Rubin, 1981).

    Example:
        >>> eight_schools().pair
        ('mu', 'tau')
    """
    draws, observed = stored("eight_schools")
    like = {"mu": jnp.zeros(()), "tau": jnp.zeros(()), "theta": jnp.zeros(8)}
    target = DensityTarget(
        eight_schools_log_prob, like, space=EightSchoolsSpace(), observed=observed
    )
    return DemoTask(
        name="eight_schools",
        title="Eight schools",
        target=target,
        guide=eight_schools_guide,
        reference=draws,
        pair=("mu", "tau"),
        steps=3000,
        features={
            "standard deviation of tau": _sd_of_tau,
            "95% quantile of tau": functools.partial(_quantile_of_tau, 0.95),
        },
    )


def _sd_of_tau(draws: Draws) -> str:
    return f"{np.std(np.asarray(draws['tau'])):.1f}"


def _quantile_of_tau(level: float, draws: Draws) -> str:
    return f"{np.quantile(np.asarray(draws['tau']), level):.1f}"
