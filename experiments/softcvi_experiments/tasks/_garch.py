"""GARCH(1,1), under the paper's model or posteriordb's."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from flowjax.distributions import LogNormal
from jax.scipy.stats import norm
from jaxtyping import Array, Float, PRNGKeyArray, Scalar
from paramax import NonTrainable

from softcvi.guides import Conditional, DiagonalNormal, SiteGuide, SplineUniform
from softcvi.targets import AbstractSpace, DensityTarget
from softcvi_experiments.references import AbstractReferenceSource
from softcvi_experiments.tasks._task import (
    AbstractTask,
    RunData,
    gather_references,
)

_FIRST_VARIANCE = 0.25
_NARROWEST = 1e-8


class GarchSpace(AbstractSpace):
    """``beta1`` as a share of what ``alpha1`` leaves; the others as they are.

    Example:
        >>> u = {"mu": 0.0, "alpha0": 1.0, "alpha1": 0.5, "beta1": 0.5}
        >>> x, log_det = GarchSpace().to_model_and_log_det(u)
        >>> float(x["beta1"]), round(float(log_det), 4)
        (0.25, -0.6931)
    """

    def to_model_and_log_det(
        self, u: dict[str, Array]
    ) -> tuple[dict[str, Array], Scalar]:
        room = _room(u["alpha1"])
        return {**u, "beta1": room * u["beta1"]}, jnp.log(room)

    def from_model_and_log_det(
        self, x: dict[str, Array]
    ) -> tuple[dict[str, Array], Scalar]:
        room = _room(x["alpha1"])
        return {**x, "beta1": x["beta1"] / room}, -jnp.log(room)


def _room(alpha1: Float[Array, ""]) -> Float[Array, ""]:
    return jnp.maximum(1 - alpha1, _NARROWEST)


def garch_variances(
    x: dict[str, Array], previous: Float[Array, " time"]
) -> Float[Array, " time"]:
    """Variances ``v_t = alpha0 + alpha1 (y_{t-1} - mu)^2 + beta1 v_{t-1}``.

    A linear recurrence, so after ``k`` doublings every element has gathered the
    ``2^k`` shocks before it: eight short steps for 200 points, on every backend.

    Args:
        x: Parameters in model coordinates.
        previous: The point before each variance.

    Example:
        >>> x = {"mu": 0.0, "alpha0": 1.0, "alpha1": 0.5, "beta1": 0.4}
        >>> [round(float(v), 2) for v in garch_variances(x, jnp.ones(2))]
        [1.6, 2.14]
    """
    time, decay, reach = jnp.arange(len(previous)), x["beta1"], 1
    before = jnp.where(time == 0, decay * _FIRST_VARIANCE, 0.0)
    variances = x["alpha0"] + x["alpha1"] * (previous - x["mu"]) ** 2 + before
    while reach < len(previous):
        earlier = jnp.where(time < reach, 0.0, jnp.roll(variances, reach))
        variances = variances + decay * earlier
        decay, reach = decay**2, 2 * reach
    return variances


def garch_log_prob(
    x: dict[str, Array], observed: dict[str, Float[Array, " time"]]
) -> Scalar:
    """The paper's model: ``beta1`` uniform below ``1 - alpha1``, every point scored.

    Args:
        x: ``mu``, ``alpha0``, ``alpha1`` and ``beta1``.
        observed: The series ``y``.

    Example:
        >>> x = {"mu": 0.0, "alpha0": 1.0, "alpha1": 0.5, "beta1": 0.4}
        >>> round(float(garch_log_prob(x, {"y": jnp.ones(3)})), 4)
        -3.8659
    """
    y = observed["y"]
    previous = jnp.concatenate([y[:1], y[:-1]])
    variances = garch_variances(x, previous)
    likelihood = jnp.sum(norm.logpdf(y, x["mu"], jnp.sqrt(variances)))
    prior = -jnp.log(_room(x["alpha1"]))
    return jnp.where(_inside(x), prior + likelihood, -jnp.inf)


def posteriordb_garch_log_prob(
    x: dict[str, Array], observed: dict[str, Float[Array, " time"]]
) -> Scalar:
    """The model of posteriordb: flat on the triangle, the first variance fixed.

    Args:
        x: ``mu``, ``alpha0``, ``alpha1`` and ``beta1``.
        observed: The series ``y``.

    Example:
        >>> x = {"mu": 0.0, "alpha0": 1.0, "alpha1": 0.5, "beta1": 0.4}
        >>> value = posteriordb_garch_log_prob(x, {"y": jnp.ones(3)})
        >>> round(float(value), 4)
        -5.2252
    """
    y = observed["y"]
    variances = garch_variances(x, y[:-1])
    likelihood = norm.logpdf(y[0], x["mu"], jnp.sqrt(_FIRST_VARIANCE))
    likelihood += jnp.sum(norm.logpdf(y[1:], x["mu"], jnp.sqrt(variances)))
    return jnp.where(_inside(x), likelihood, -jnp.inf)


def _inside(x: dict[str, Array]) -> Array:
    alpha0, alpha1, beta1 = x["alpha0"], x["alpha1"], x["beta1"]
    triangle = (alpha1 >= 0) & (beta1 >= 0) & (alpha1 + beta1 <= 1)
    return (alpha0 > 0) & triangle


_LOG_PROBS = {"paper": garch_log_prob, "posteriordb": posteriordb_garch_log_prob}


def _fifth(x: Array) -> Array:
    return x / 5


class Garch(AbstractTask):
    """A series of changing volatility under the paper's model or posteriordb's.

    The guide has a normal for ``mu``, a log normal for ``alpha0`` and splines for the
    other two, that of ``beta1`` steered by a network of ``alpha0`` and ``alpha1``.

    posteriordb's draws belong to posteriordb's model. The paper compared its own model
    with them, so its figures have the distance of the two models in them: they differ
    in the prior (flat on the triangle of ``alpha1`` and ``beta1`` there) and in the
    first point (its standard deviation is fixed at 0.5 there).

    Args:
        variant: Whose model.

    Example:
        >>> import jax
        >>> Garch("paper").guide(jax.random.key(0)).order
        ('mu', 'alpha0', 'alpha1', 'beta1')
        >>> Garch("posteriordb").name
        'garch_posteriordb'
    """

    learning_rate = 5e-4

    def __init__(self, variant: Literal["paper", "posteriordb"] = "paper") -> None:
        self._variant = variant
        self.name = "garch" if variant == "paper" else f"garch_{variant}"
        self.title = "GARCH(1,1)" if variant == "paper" else f"GARCH(1,1), {variant}"

    def posterior_name(self, run: int) -> str:
        return f"garch_{self._variant}"

    def data(
        self, key: PRNGKeyArray, runs: list[int], source: AbstractReferenceSource
    ) -> RunData:
        names = [self.posterior_name(run) for run in runs]
        return gather_references(names, ("y",), source)

    def target(self, observed: dict[str, Array]) -> DensityTarget:
        like = {site: jnp.zeros(()) for site in ("mu", "alpha0", "alpha1", "beta1")}
        log_prob = _LOG_PROBS[self._variant]
        return DensityTarget(log_prob, like, space=GarchSpace(), observed=observed)

    def guide(self, key: PRNGKeyArray) -> SiteGuide:
        network = eqx.nn.MLP(
            in_size=2,
            out_size=SplineUniform(knots=10).raw.size,
            width_size=20,
            depth=1,
            final_activation=_fifth,
            key=key,
        )
        beta1 = SplineUniform(knots=10, network=network, cond_shape=(2,))
        # The network's last bias already does what free start values would.
        beta1 = eqx.tree_at(lambda d: d.raw, beta1, replace_fn=NonTrainable)
        return SiteGuide(
            {
                "mu": DiagonalNormal(jnp.zeros(()), jnp.ones(())),
                "alpha0": LogNormal(),
                "alpha1": SplineUniform(knots=10),
                "beta1": Conditional(beta1, on=("alpha0", "alpha1")),
            }
        )
