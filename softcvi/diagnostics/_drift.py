"""Whether a run had settled."""

import numpy as np


def settled_drift(elbo: np.ndarray, share: float = 0.2) -> float | None:
    """Change of the ELBO between the halves of the last part of a run, beyond noise.

    Example:
        >>> import numpy as np
        >>> from softcvi.diagnostics import settled_drift
        >>> settled_drift(np.zeros(100))
        0.0
        >>> settled_drift(np.arange(100.0))
        10.0
    """
    tail = elbo[-max(8, int(share * elbo.size)) :]
    tail = tail[np.isfinite(tail)]
    if tail.size < 8:
        return None
    first, second = tail[: tail.size // 2], tail[tail.size // 2 :]
    change = float(second.mean() - first.mean())
    noise = float(np.sqrt(first.var() / first.size + second.var() / second.size))
    return 0.0 if abs(change) < 3 * noise else change
