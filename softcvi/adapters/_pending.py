"""Points that were asked for and not told yet, by their ids, in files too."""

from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

# By id: which of the proposals drew the point, and the point in the fitting space.
Pending = dict[int, tuple[int, PyTree]]


def packed(pending: Pending) -> dict[str, Any]:
    """Pending points as arrays to write to a file."""
    return {
        "pending": [particle for _, particle in pending.values()],
        "pending_ids": np.asarray(list(pending), np.int64),
        "pending_proposals": np.asarray(
            [proposal for proposal, _ in pending.values()], np.int64
        ),
    }


def unpacked(parts: dict[str, Any]) -> Pending:
    """Pending points as read from a file."""
    rows = zip(
        np.asarray(parts["pending_ids"]),
        np.asarray(parts["pending_proposals"]),
        parts["pending"],
        strict=True,
    )
    return {
        int(i): (int(proposal), jax.tree_util.tree_map(np.asarray, particle))
        for i, proposal, particle in rows
    }
