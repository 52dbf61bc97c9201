"""Which generated quantities are log likelihoods and replicates of the data.

Stan has no names for these; users follow conventions: ``log_lik`` for the pointwise log
likelihood, ``y_rep`` (or ``y_pred``, ``y_tilde``, ``y_sim``) for replicates of ``y``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

_LOG_LIKELIHOOD = re.compile(r"(?:log_?lik|log_?likelihood|ll)(?:_(?P<of>\w+))?$")
_REPLICATE = re.compile(r"(?P<of>\w+?)_?(?:rep|pred|tilde|sim|new|ppc)$")


# Compared by identity, so that a target can hold it and still be hashed.
@dataclass(frozen=True, eq=False)
class Groups:
    """Names of generated quantities by the group that they belong to.

    Attributes:
        log_likelihood: Name in the group to the generated quantity.
        predictive: Name in the group, that of the data where there is one, likewise.
        observed: Names of the data that are replicated or have a likelihood.

    Example:
        >>> Groups({"y": "log_lik"}, {"y": "y_rep"}, ("y",)).observed
        ('y',)
    """

    log_likelihood: dict[str, str]
    predictive: dict[str, str]
    observed: tuple[str, ...]


def classify(
    generated: Mapping[str, tuple[int, ...]], data: Mapping[str, Any]
) -> Groups:
    """Sort generated quantities by their names, and by the shapes of the data.

    Args:
        generated: Shapes of the generated quantities.
        data: Data of the program.

    Example:
        >>> groups = classify({"log_lik": (3,), "y_rep": (3,)}, {"y": [1, 2, 3]})
        >>> groups.log_likelihood, groups.predictive, groups.observed
        ({'y': 'log_lik'}, {'y': 'y_rep'}, ('y',))
    """
    predictive = {}
    for name, shape in generated.items():
        match = _REPLICATE.match(name)
        if match:
            base = match["of"]
            pairs = base in data and np.shape(data[base]) == shape
            predictive[base if pairs else name] = name
    observed = [name for name in predictive if name in data]
    log_likelihood = {}
    for name, shape in generated.items():
        match = _LOG_LIKELIHOOD.match(name)
        if match:
            of = match["of"] or _only(observed or ["y"], data, shape)
            log_likelihood[of if of is not None and of in data else name] = name
    observed += [name for name in log_likelihood if name in data]
    return Groups(log_likelihood, predictive, tuple(dict.fromkeys(observed)))


def _only(
    candidates: list[str], data: Mapping[str, Any], shape: tuple[int, ...]
) -> str | None:
    """The one candidate whose data have this shape, if there is one."""
    fitting = [n for n in candidates if n in data and np.shape(data[n]) == shape]
    return fitting[0] if len(fitting) == 1 else None
