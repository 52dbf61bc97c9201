"""Runs over all devices of this process, and over several processes.

Processes that run one fit together (``jax.distributed``) run the same program on shares
of the same data. What one decides by its own clock, all must do: the first decides.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

_RUNS = "runs"


class Devices(eqx.Module):
    """The devices that share the runs of a batch.

    Runs never look at each other, so that a device needs nothing from the others and
    a run is the same wherever it happens.

    Attributes:
        mesh: The devices in a row; None where there is only one.
        runs: Number of runs.
    """

    mesh: Mesh | None = eqx.field(static=True)
    runs: int = eqx.field(static=True)

    @classmethod
    def for_runs(cls, runs: int) -> "Devices":
        """All local devices, or as many as there are runs."""
        devices = jax.local_devices()[:runs]
        mesh = Mesh(devices, (_RUNS,)) if len(devices) > 1 else None
        return cls(mesh, runs)

    @property
    def num_rows(self) -> int:
        """Number of runs, rounded up so that all devices have equally many."""
        if self.mesh is None:
            return self.runs
        return -(-self.runs // self.mesh.size) * self.mesh.size

    def without_filling(self, tree: PyTree) -> PyTree:
        """The arrays without the rows that fill up the last device."""
        if self.num_rows == self.runs:
            return tree
        return _map(lambda leaf: leaf[: self.runs], tree)

    def spread(self, tree: PyTree) -> PyTree:
        """Arrays with a leading axis of runs, each row on the device of its run.

        The last run is repeated where the devices do not get equally many.
        """
        missing = self.num_rows - self.runs
        if missing:
            tree = _map(
                lambda leaf: jnp.concatenate([leaf, *[leaf[-1:]] * missing]), tree
            )
        return self._placed(tree, PartitionSpec(_RUNS))

    def copied(self, tree: PyTree) -> PyTree:
        """Arrays that the runs share, on every device."""
        return self._placed(tree, PartitionSpec())

    def _placed(self, tree: PyTree, spec: PartitionSpec) -> PyTree:
        if self.mesh is None:
            return tree
        sharding = NamedSharding(self.mesh, spec)
        return _map(lambda leaf: jax.device_put(leaf, sharding), tree)


def _map(function: Any, tree: PyTree) -> PyTree:
    return jax.tree_util.tree_map(
        lambda leaf: function(leaf) if eqx.is_array(leaf) else leaf, tree
    )


def is_first() -> bool:
    """Whether this is the process that decides, and writes files."""
    return jax.process_index() == 0


def are_many() -> bool:
    """Whether there are other processes."""
    return jax.process_count() > 1


def agreed(value: Any) -> int:
    """The value of the first process, in all processes.

    Args:
        value: An integer or a truth value; that of the other processes is ignored.
    """
    return int(shared(np.int32(value))) if are_many() else int(value)


def shared(tree: PyTree) -> PyTree:
    """The arrays of the first process, in all processes.

    Args:
        tree: Arrays of the same shapes everywhere.
    """
    return multihost_utils.broadcast_one_to_all(tree) if are_many() else tree


def ended_elsewhere(step: int, words: str) -> str:
    """The message for a step that failed because another process has ended.

    Args:
        step: Steps that were done.
        words: What JAX says.
    """
    return (
        f"the steps after {step} need all {jax.process_count()} processes, and one of "
        f"them has ended or cannot be reached ({words}). Look at its own messages, and "
        "start all of them again, as many as you like, with the same checkpoint"
    )
