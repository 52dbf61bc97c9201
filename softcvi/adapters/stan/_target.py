"""The posterior of a Stan program as a target."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray, Scalar

from softcvi.adapters._model_target import AbstractModelTarget
from softcvi.adapters.stan._callbacks import log_density_of
from softcvi.adapters.stan._groups import Groups, classify
from softcvi.adapters.stan._host_call import host_call
from softcvi.adapters.stan._program import AbstractProgram, Layout, Shapes
from softcvi.targets import AbstractSpace, ModelSpace, Structure

_U = "unconstrained"


class StanTarget(AbstractModelTarget):
    """The posterior of a Stan program; made by ``from_stan``.

    The fit happens on Stan's unconstrained vector, with Stan's gradients. Draws come
    back by name in the model's own coordinates, with transformed parameters and
    generated quantities. Log densities are those on the unconstrained scale.

    Args:
        program: The compiled program with its data.
        data: Named data, for ArviZ.
        seed: Seed of random generated quantities. They depend on it and on the draw.

    Example:
        >>> import jax.numpy as jnp
        >>> from softcvi.adapters.stan import AbstractProgram, StanTarget
        >>> class LogNormal(AbstractProgram):
        ...     size = 1
        ...     names = (("sigma",), (), ())
        ...
        ...     def log_density(self, rows):
        ...         return -0.5 * rows[:, 0] ** 2
        ...
        ...     def log_density_and_gradient(self, rows):
        ...         return self.log_density(rows), -rows
        ...
        ...     def constrain(self, rows, seed):
        ...         return np.exp(rows)
        >>> target = StanTarget(LogNormal())
        >>> float(target.describe({"unconstrained": jnp.zeros(1)})["sigma"])
        1.0
    """

    program: AbstractProgram = eqx.field(static=True)
    layout: Layout = eqx.field(static=True)
    groups: Groups = eqx.field(static=True)
    data: Any = eqx.field(static=True)
    seed: int = eqx.field(static=True)
    value: Callable = eqx.field(static=True)
    structure: Structure = eqx.field(static=True)
    space: AbstractSpace
    has_gradient: bool = eqx.field(static=True, default=True)

    def __init__(
        self,
        program: AbstractProgram,
        data: Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
    ):
        parameters, transformed, generated = program.names
        self.program = program
        self.layout = Layout([*parameters, *transformed, *generated])
        data = {} if data is None else data
        self.groups = classify(dict(Layout(generated).shapes), data)
        self.data = _Named(data)
        self.seed = seed
        self.value = log_density_of(program)
        self.structure = Structure({_U: jnp.zeros(program.size)})
        self.space = ModelSpace()
        self.has_gradient = True

    @property
    def shapes(self) -> Shapes:
        """Name and shape of every variable of a draw."""
        return self.layout.shapes

    @property
    def rejections(self) -> int:
        """Points so far at which the program gave no density, and counted as zero."""
        return self.program.rejections

    def log_density(self, particle: dict, data: Any = None) -> Scalar:
        return self.value(particle[_U])

    def describe(self, x: dict) -> dict[str, Array]:
        vector = jnp.asarray(x[_U])
        width = sum(len(block) for block in self.program.names)
        (flat,) = host_call(self._constrained, ((width,),), vector)
        return self.layout.split(flat)

    def _constrained(self, x: np.ndarray) -> tuple[np.ndarray]:
        out = self.program.constrain(x.reshape(-1, x.shape[-1]), self.seed)
        return (np.asarray(out).reshape(*x.shape[:-1], -1),)

    def observed_data(self) -> dict[str, np.ndarray]:
        return {n: np.asarray(self.data.values[n]) for n in self.groups.observed}

    def log_likelihood(self, x: dict) -> dict[str, Array]:
        return {name: x[of] for name, of in self.groups.log_likelihood.items()}

    def predict(self, key: PRNGKeyArray, x: dict) -> dict[str, Array]:
        # Part of the draw already: Stan makes replicates with its other values.
        return {name: x[of] for name, of in self.groups.predictive.items()}

    def in_other_groups(self) -> frozenset[str]:
        likelihoods, replicates = self.groups.log_likelihood, self.groups.predictive
        return frozenset([*likelihoods.values(), *replicates.values()])


class _Named:
    """Data that JAX compares by identity, where arrays could not be compared."""

    def __init__(self, values: Mapping[str, Any]):
        self.values = dict(values)
