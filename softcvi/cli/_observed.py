"""Whether a model looks at data at all."""

from softcvi.targets import AbstractTarget


def is_prior(target: AbstractTarget) -> bool:
    """Whether a NumPyro model observes nothing, so that its posterior is its prior.

    Args:
        target: The model; of other kinds nothing is known, which is said by False.

    Example:
        >>> import numpyro, numpyro.distributions as dist
        >>> from softcvi.adapters import from_numpyro
        >>> def prior():
        ...     return numpyro.sample("mu", dist.Normal(0, 5))
        >>> def model(y):
        ...     numpyro.sample("y", dist.Normal(prior(), 1), obs=y)
        >>> is_prior(from_numpyro(prior)), is_prior(from_numpyro(model, 1.0))
        (True, False)
    """
    from softcvi.adapters.numpyro._target import NumPyroTarget

    if not isinstance(target, NumPyroTarget) or target.observed:
        return False
    # A `factor` is no data, but it is a likelihood all the same.
    return not target.has_factor
