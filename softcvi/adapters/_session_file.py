"""The file of an ask-and-tell session: evaluations, guides and pending points."""

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from softcvi.guides import AbstractGuide
from softcvi.posterior._posterior import check_usable
from softcvi.posterior._storage import read, write
from softcvi.targets import AbstractSpace, Structure

# By id: which of the proposals drew the point, and the point in the fitting space.
Pending = dict[int, tuple[int, PyTree]]
# Far more points than anybody asks for, and far from the end of 64 bits.
_MOST_POINTS = 2**48


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
        """Write all of it to a file; with evaluations, a full disk is a warning."""
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
        facts = {"evaluations": len(self.log_p), "next_id": self.next_id}
        try:
            write(path, parts, facts)
        except OSError as error:
            if not len(self.log_p):
                raise
            # An evaluation can have taken hours: no full disk may throw it away.
            warnings.warn(
                f"path: {path} cannot be written ({error.strerror}). Make room: "
                f"{len(self.log_p)} evaluations are in memory only until the next ask "
                "or tell.",
                stacklevel=4,
            )

    @classmethod
    def load(cls, path: Path) -> "StoredSession":
        """Read what ``save`` has written; older files have no pending points."""
        parts, facts = read(path)
        try:
            session = cls._checked(parts, facts)
            for guide in (session.guide, *session.proposals):
                check_usable(guide, path)
            return session
        # A file of another kind, or one whose parts do not fit each other.
        except Exception as error:
            words = str(error).partition("\n")[0] or type(error).__name__
            raise ValueError(
                f"path: {path} holds no session, or a damaged one ({words:.300}). Give "
                "another path, or delete it to start afresh."
            ) from error

    @classmethod
    def _checked(cls, parts: dict[str, Any], facts: dict[str, Any]) -> "StoredSession":
        rows = zip(
            np.asarray(parts.get("pending_ids", ())),
            np.asarray(parts.get("pending_proposals", ())),
            parts.get("pending", ()),
            strict=True,
        )
        session = cls(
            guide=_checked(AbstractGuide, parts["guide"]),
            space=_checked(AbstractSpace, parts["space"]),
            proposals=[_checked(AbstractGuide, guide) for guide in parts["proposals"]],
            counts=[int(count) for count in np.asarray(parts["counts"])],
            points=parts["points"],
            log_p=np.asarray(parts["log_p"], np.float64),
            pending={
                int(i): (int(proposal), jax.tree_util.tree_map(np.asarray, particle))
                for i, proposal, particle in rows
            },
            next_id=int(facts.get("next_id", facts["evaluations"])),
        )
        session._check()
        return session

    def _check(self) -> None:
        """Refuse parts that do not fit each other."""
        structure, num = self.guide.structure, len(self.log_p)
        if self.log_p.ndim != 1 or np.isnan(self.log_p).any():
            raise ValueError("log densities are not one number per point")
        if len(self.counts) != len(self.proposals) or min(self.counts, default=0) < 0:
            raise ValueError("counts do not belong to the proposals")
        if sum(self.counts) != num:
            raise ValueError(f"{num} log densities of {sum(self.counts)} points")
        if not num <= self.next_id <= _MOST_POINTS:
            raise ValueError(f"{self.next_id} as the number of the next point")
        if not all(0 <= i < self.next_id for i in self.pending):
            raise ValueError("pending points with unknown numbers")
        if not all(0 <= p < len(self.proposals) for p, _ in self.pending.values()):
            raise ValueError("pending points of unknown proposals")
        rows = jax.tree_util.tree_map(
            lambda leaf: np.broadcast_to(np.zeros((), leaf.dtype), (num, *leaf.shape)),
            structure.like,
        )
        expected = [(Structure(rows), self.points)] if num else []
        expected += [(structure, point) for _, point in self.pending.values()]
        expected += [(structure, guide.structure.like) for guide in self.proposals]
        for wanted, found in expected:
            difference = wanted.difference(Structure(found))
            if difference:
                raise ValueError(difference)


def _checked(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"a {type(value).__name__} in the place of a guide or space")
    return value
