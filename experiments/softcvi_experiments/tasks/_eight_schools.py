"""Eight schools: a hierarchical model with heavy tails."""

import equinox as eqx
import jax.numpy as jnp
from flowjax.bijections import Scale
from flowjax.distributions import Transformed
from jax.scipy.stats import cauchy, norm
from jaxtyping import Array, Float, PRNGKeyArray, Scalar
from paramax import NonTrainable

from softcvi.guides import DiagonalNormal, Folded, SiteGuide, StudentT
from softcvi.targets import AbstractSpace, DensityTarget
from softcvi_experiments.references import AbstractReferenceSource
from softcvi_experiments.tasks._task import (
    AbstractTask,
    RunData,
    gather_references,
)

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


class EightSchools(AbstractTask):
    """Effects of coaching in eight schools (Rubin, 1981).

    The guide has a normal for ``mu``, a folded Student's t for ``tau`` and independent
    Student's t for the schools, all of standardised parameters.

    Example:
        >>> import jax
        >>> guide = EightSchools().guide(jax.random.key(0))
        >>> guide.structure.size
        10
    """

    name = "eight_schools"
    title = "Eight schools"
    learning_rate = 1e-3

    def posterior_name(self, run: int) -> str:
        return "eight_schools"

    def data(
        self, key: PRNGKeyArray, runs: list[int], source: AbstractReferenceSource
    ) -> RunData:
        names = [self.posterior_name(run) for run in runs]
        return gather_references(names, ("y", "sigma"), source)

    def target(self, observed: dict[str, Array]) -> DensityTarget:
        like = {"mu": jnp.zeros(()), "tau": jnp.zeros(()), "theta": jnp.zeros(8)}
        return DensityTarget(
            eight_schools_log_prob,
            like,
            space=EightSchoolsSpace(),
            observed=observed,
        )

    def guide(self, key: PRNGKeyArray) -> SiteGuide:
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
