"""Whether a model looks at data at all."""

from softcvi.targets import AbstractTarget


def is_prior(target: AbstractTarget) -> bool:
    """Whether a NumPyro model observes nothing, so that its posterior is its prior.

    Args:
        target: The model; of other kinds nothing is known, which is said by False.

    Example:
        >>> import numpyro, numpyro.distributions as dist
        >>> from softcvi.adapters import from_numpyro
        >>> def model(y=None):
        ...     mu = numpyro.sample("mu", dist.Normal(0, 5))
        ...     numpyro.sample("y", dist.Normal(mu, 1), obs=y)
        >>> is_prior(from_numpyro(model)), is_prior(from_numpyro(model, 1.0))
        (True, False)
    """
    from softcvi.adapters.numpyro._target import NumPyroTarget
    from softcvi.adapters.numpyro._sites import find_sites

    if not isinstance(target, NumPyroTarget) or target.observed:
        return False
    # A `factor` is no data, but it is a likelihood all the same.
    trace = find_sites(target.call).trace
    return not any(s["type"] == "sample" and s["is_observed"] for s in trace.values())
