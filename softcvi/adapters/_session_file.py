"""The file of an ask-and-tell session: evaluations, guides and pending points."""

import dataclasses
from pathlib import Path

import jax
import numpy as np
from jaxtyping import PyTree

from softcvi.guides import AbstractGuide
from softcvi.posterior._storage import read, write
from softcvi.targets import AbstractSpace

# By id: which of the proposals drew the point, and the point in the fitting space.
Pending = dict[int, tuple[int, PyTree]]


@dataclasses.dataclass
class StoredSession:
    """Everything that a session needs to go on.

    Attributes:
        guide: The guide as it is now.
        space: Where the fit happens.
        proposals: Every guide that points were drawn from.
        counts: How many points of each were told.
        points: The points told, with a leading axis.
        log_p: Their log densities in the fitting space.
        pending: Points asked for and not told yet.
        next_id: Id of the next point.
    """

    guide: AbstractGuide
    space: AbstractSpace
    proposals: list[AbstractGuide]
    counts: list[int]
    points: PyTree
    log_p: np.ndarray
    pending: Pending
    next_id: int

    def save(self, path: Path) -> None:
        """Write all of it to a file."""
        proposals = [proposal for proposal, _ in self.pending.values()]
        parts = {
            "guide": self.guide,
            "space": self.space,
            "proposals": self.proposals,
            "counts": np.asarray(self.counts, np.int64),
            "points": self.points,
            "log_p": self.log_p,
            "pending": [particle for _, particle in self.pending.values()],
            "pending_ids": np.asarray(list(self.pending), np.int64),
            "pending_proposals": np.asarray(proposals, np.int64),
        }
        write(path, parts, {"evaluations": len(self.log_p), "next_id": self.next_id})

    @classmethod
    def load(cls, path: Path) -> "StoredSession":
        """Read what ``save`` has written; older files have no pending points."""
        parts, facts = read(path)
        rows = zip(
            np.asarray(parts.get("pending_ids", ())),
            np.asarray(parts.get("pending_proposals", ())),
            parts.get("pending", ()),
            strict=True,
        )
        pending = {
            int(i): (int(proposal), jax.tree_util.tree_map(np.asarray, particle))
            for i, proposal, particle in rows
        }
        return cls(
            guide=parts["guide"],
            space=parts["space"],
            proposals=list(parts["proposals"]),
            counts=[int(count) for count in np.asarray(parts["counts"])],
            points=parts["points"],
            log_p=np.asarray(parts["log_p"]),
            pending=pending,
            next_id=int(facts.get("next_id", facts["evaluations"])),
        )
