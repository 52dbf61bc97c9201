"""Whether a model looks at data at all."""

from softcvi.targets import AbstractTarget


def is_prior(target: AbstractTarget) -> bool:
    """Whether a NumPyro model observes nothing, so that its posterior is its prior."""
    from softcvi.adapters.numpyro._target import NumPyroTarget

    if not isinstance(target, NumPyroTarget) or target.observed:
        return False
    # A `factor` is no data, but it is a likelihood all the same.
    return not target.has_factor
