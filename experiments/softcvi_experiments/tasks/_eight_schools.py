"""Eight schools: a hierarchical model with heavy tails."""

import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from softcvi.demo import (
    EightSchoolsSpace,
    eight_schools_guide,
    eight_schools_log_prob,
)
from softcvi.guides import SiteGuide
from softcvi.targets import DensityTarget
from softcvi_experiments.references import AbstractReferenceSource
from softcvi_experiments.tasks._task import (
    AbstractTask,
    RunData,
    gather_references,
)


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
        return eight_schools_guide(key)
