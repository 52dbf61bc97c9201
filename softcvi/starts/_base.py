"""What every start offers: where the posterior is, before a guide is fitted to it."""

from abc import abstractmethod

import equinox as eqx
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from softcvi.diagnostics import SearchEvidence
from softcvi.targets import AbstractTarget


class Moments(eqx.Module):
    """Mean and covariance of one mode, with what was measured besides.

    A quality that was not measured is None.

    Attributes:
        mean: Mean vector in the fitting space.
        covariance: Covariance matrix; None where there are too many parameters for
            one, and ``scale`` and ``factor`` describe it.
        khat: k-hat of a t proposal with these moments: how normal the mode is.
        ess_share: Share of effective draws of that proposal.
        log_evidence: Estimate of the log mass of the mode.
        log_evidence_error: Standard error of that estimate.
        departure: How far the marginals are from normal: their largest absolute
            skewness, or half their largest excess kurtosis if that is more.
        scale: With ``factor``: the covariance is ``diag(scale^2) + factor factor'``.
        factor: Matrix of few columns.

    Example:
        >>> import numpy as np, softcvi
        >>> mode = softcvi.starts.Moments(np.zeros(2), np.diag([1.0, 4.0]))
        >>> mode.deviations.tolist(), mode.khat
        ([1.0, 2.0], None)
    """

    mean: Float[np.ndarray, " d"]
    covariance: Float[np.ndarray, "d d"] | None = None
    khat: float | None = None
    ess_share: float | None = None
    log_evidence: float | None = None
    departure: float | None = None
    log_evidence_error: float | None = None
    scale: Float[np.ndarray, " d"] | None = None
    factor: Float[np.ndarray, "d r"] | None = None

    @property
    def dense(self) -> Float[np.ndarray, "d d"]:
        """The covariance as a matrix, however many parameters there are."""
        if self.covariance is not None:
            return self.covariance
        assert self.scale is not None
        assert self.factor is not None
        return np.diag(self.scale**2) + self.factor @ self.factor.T

    @property
    def deviations(self) -> Float[np.ndarray, " d"]:
        """Standard deviation of each parameter."""
        if self.covariance is not None:
            return np.sqrt(np.diagonal(self.covariance))
        assert self.scale is not None
        assert self.factor is not None
        return np.sqrt(self.scale**2 + np.sum(self.factor**2, axis=1))


class StartReport(eqx.Module):
    """What a start found out about the posterior.

    Attributes:
        target: The target in the coordinates that were found to suit it best.
        modes: Moments of each separate mode, the one with most mass first; empty if
            none was looked for or found.
        search: How far was looked; None if nothing was searched.
        description: What was done, for people.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> report = softcvi.starts.Explore().find(jax.random.key(0), target)
        >>> len(report.modes), report.search.num_places
        (1, 1)
    """

    target: AbstractTarget
    modes: tuple[Moments, ...] = ()
    search: SearchEvidence | None = None
    description: str = eqx.field(static=True, default="")


class AbstractStart(eqx.Module):
    """A way to find out where a posterior is.

    Example:
        >>> import jax, jax.numpy as jnp, numpy as np, softcvi
        >>> from softcvi.starts import AbstractStart, Moments, StartReport
        >>> class AtOnes(AbstractStart):
        ...     def find(self, key, target):
        ...         size = target.structure.size
        ...         mode = Moments(np.ones(size), np.eye(size))
        ...         return StartReport(target, (mode,), description="at ones")
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> AtOnes().find(jax.random.key(0), target).modes[0].mean.tolist()
        [1.0, 1.0]
    """

    @abstractmethod
    def find(self, key: PRNGKeyArray, target: AbstractTarget) -> StartReport:
        """Look for the posterior.

        Args:
            key: Random key; the same key gives the same report.
            target: The posterior.
        """

    def glimpse(self, key: PRNGKeyArray, target: AbstractTarget) -> StartReport | None:
        """Look for the posterior's rough place and width only, to choose coordinates.

        Args:
            key: Random key.
            target: The posterior.

        Returns:
            A report, or None where nothing is cheaper than ``find``.
        """
        return None
