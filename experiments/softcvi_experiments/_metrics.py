"""The paper's three metrics for a batch of fits, in one compiled program."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from softcvi.diagnostics import coverage, mean_accuracy
from softcvi.guides import AbstractGuide
from softcvi.posterior import Posterior
from softcvi.targets import AbstractTarget

NUM_DRAWS = 5_000
NUM_LEVELS = 100


class Metrics(eqx.Module):
    """Metrics in the model's own coordinates, one row per fit.

    Attributes:
        log_prob_reference: Mean log probability of the reference draws.
        posterior_mean_accuracy: Minus the distance of the means in reference sds.
        coverage_nominal: Levels of the highest-density regions.
        coverage_actual: Share of reference draws inside them.
    """

    log_prob_reference: Float[Array, " fits"]
    posterior_mean_accuracy: Float[Array, " fits"]
    coverage_nominal: Float[Array, " levels"]
    coverage_actual: Float[Array, "fits levels"]


@eqx.filter_jit
def measure(
    keys: PRNGKeyArray,
    guides: AbstractGuide,
    targets: AbstractTarget,
    draws: dict[str, Float[Array, "sets draws ..."]],
    data_set: Int[Array, " fits"],
) -> Metrics:
    """Score fitted guides against reference draws.

    Fits are taken one after the other, each over all of its draws at once: memory
    does not grow with their number.

    Args:
        keys: One key a fit.
        guides: Fitted guides, every array with a leading axis of fits.
        targets: Their targets, likewise.
        draws: Reference draws in model coordinates, by data set.
        data_set: The data set of every fit.

    Example:
        >>> import jax.random as jr
        >>> from softcvi_experiments import references, tasks
        >>> task, source = tasks.LinearRegression(), references.BuiltinReferences()
        >>> data = task.data(jr.key(0), [0], source)
        >>> guides = eqx.filter_vmap(task.guide)(jr.split(jr.key(0), 1))
        >>> targets, sets = task.target(data.observed), jnp.asarray(data.data_set)
        >>> metrics = measure(jr.split(jr.key(1), 1), guides, targets, data.draws, sets)
        >>> metrics.coverage_actual.shape
        (1, 100)
    """
    nominal = jnp.linspace(0.0, 1.0, NUM_LEVELS)
    arrays, static = eqx.partition((guides, targets), eqx.is_array)

    def one(fit: PyTree) -> tuple[Array, Array, Array]:
        key, fit_arrays, index = fit
        guide, target = eqx.combine(fit_arrays, static)
        posterior = Posterior(guide, target)
        reference = jax.tree_util.tree_map(lambda leaf: leaf[index], draws)
        ours = posterior.sample(key, NUM_DRAWS)
        log_q_reference = posterior.log_prob(reference)
        _, actual = coverage(posterior.log_prob(ours), log_q_reference, nominal)
        return jnp.mean(log_q_reference), mean_accuracy(ours, reference), actual

    # An accelerator's reduced precision would be seen in the third decimal.
    with jax.default_matmul_precision("highest"):
        log_prob, accuracy, actual = jax.lax.map(one, (keys, arrays, data_set))
    return Metrics(log_prob, accuracy, nominal, actual)
