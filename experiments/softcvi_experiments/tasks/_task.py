"""What every task offers: data for a batch of runs, a target, a guide, a reference."""

import abc
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from softcvi.guides import AbstractGuide
from softcvi.targets import AbstractTarget
from softcvi_experiments.references import AbstractReferenceSource

Refresh = Callable[[PRNGKeyArray, dict[str, Array], dict[str, Array]], dict[str, Array]]


@dataclass(frozen=True)
class RunData:
    """The data and reference draws of a batch of runs.

    Args:
        observed: Arrays with a leading axis of runs, as the task's density takes them.
        draws: Reference draws in model coordinates, with a leading axis of data sets.
        data_set: Which data set each run uses.
        names: The reference posterior of every data set.
        limit: Best mean log probability of the guide's family for each run, where it
            is known exactly.
        refresh: Function of a key, one reference draw and its data that gives another
            draw of the same posterior, where the model makes that easy.

    Example:
        >>> from softcvi_experiments import references, tasks
        >>> source = references.BuiltinReferences()
        >>> data = tasks.Slcp().data(jr.key(0), [0, 1, 10], source)
        >>> data.data_set.tolist(), data.draws["theta"].shape
        ([0, 1, 0], (2, 10000, 5))
    """

    observed: dict[str, Array]
    draws: dict[str, Array]
    data_set: Int[np.ndarray, " runs"]
    names: tuple[str, ...]
    limit: Float[np.ndarray, " runs"] | None = None
    refresh: Refresh | None = None


class AbstractTask(abc.ABC):
    """A posterior, a guide for it and a reference to judge the fit by.

    All metrics are computed in the model's own coordinates, those of the reference.

    Attributes:
        name: What the command line calls it.
        title: What figures call it.
        learning_rate: The paper's constant rate.

    Example:
        >>> from softcvi_experiments import tasks
        >>> tasks.EightSchools().learning_rate
        0.001
    """

    name: str
    title: str
    learning_rate: float

    @abc.abstractmethod
    def posterior_name(self, run: int) -> str:
        """The reference posterior that a run is compared with."""

    @abc.abstractmethod
    def target(self, observed: dict[str, Array]) -> AbstractTarget:
        """The target; data with a leading axis of runs give a stack of targets."""

    @abc.abstractmethod
    def guide(self, key: PRNGKeyArray) -> AbstractGuide:
        """The paper's guide, at its start values."""

    @abc.abstractmethod
    def data(
        self, key: PRNGKeyArray, runs: list[int], source: AbstractReferenceSource
    ) -> RunData:
        """Gather data and reference draws for a batch of runs.

        Args:
            key: Seed of whatever data are new in every run.
            runs: The runs' numbers.
            source: Where references come from.
        """


def gather_references(
    names: list[str], sites: tuple[str, ...], source: AbstractReferenceSource
) -> RunData:
    """Stack the data and draws of one reference posterior a run.

    Args:
        names: The posterior of every run; each is loaded once.
        sites: Which observed arrays the density takes.
        source: Where references come from.

    Example:
        >>> from softcvi_experiments import references
        >>> names = ["eight_schools", "eight_schools"]
        >>> source = references.BuiltinReferences()
        >>> gather_references(names, ("y",), source).observed["y"].shape
        (2, 8)
    """
    unique = tuple(dict.fromkeys(names))
    references = [source.load(name) for name in unique]
    data_set = np.array([unique.index(name) for name in names])
    observed = {
        site: jnp.stack([jnp.asarray(r.observed[site], float) for r in references])
        for site in sites
    }
    return RunData(
        observed={site: value[data_set] for site, value in observed.items()},
        draws={
            site: jnp.stack([jnp.asarray(r.draws[site], float) for r in references])
            for site in references[0].draws
        },
        data_set=data_set,
        names=unique,
    )


def run_keys(key: PRNGKeyArray, runs: list[int]) -> PRNGKeyArray:
    """One key a run, the same whichever runs share its batch.

    Args:
        key: Common key.
        runs: The runs' numbers.

    Example:
        >>> run_keys(jr.key(0), [3, 4]).shape
        (2,)
    """
    return jnp.stack([jr.fold_in(key, run) for run in runs])
