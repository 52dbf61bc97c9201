"""The posterior of a Stan program as a target."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray, Scalar

from softcvi.adapters._model_target import AbstractModelTarget
from softcvi.adapters.stan._callbacks import log_density_of
from softcvi.adapters.stan._decentre import Standardised
from softcvi.adapters.stan._groups import Groups, classify
from softcvi.adapters.stan._host_call import host_call
from softcvi.adapters.stan._program import AbstractProgram, Layout, Shapes
from softcvi.adapters.stan._space import UNCONSTRAINED, StanSpace
from softcvi.targets import AbstractSpace, SpaceOfModel, Structure

# As for NumPyro models: below, the data rather than the prior determine a parameter.
_INFORMED_SPREAD = 0.5


class StanTarget(AbstractModelTarget):
    """The posterior of a Stan program; made by ``from_stan``.

    The fit happens on Stan's unconstrained vector, with Stan's gradients. Draws come
    back by name in the model's own coordinates, with transformed parameters and
    generated quantities; only ``log_lik`` and ``y_rep`` and the like are left to
    ``log_likelihood`` and ``predict``. Log densities are those on the unconstrained
    scale.

    Args:
        program: The compiled program with its data.
        data: Named data, for ArviZ.
        types: Types of the parameters in the program, which help to go back from
            draws in single precision.
        seed: Seed of random generated quantities. They depend on it and on the draw.
        standardised: Parameters to fit in standardised coordinates, until the data
            prove to say more about them than their prior.

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
        ...     def constrain(self, rows, seeds):
        ...         return np.exp(rows)
        ...
        ...     def unconstrain(self, parameters):
        ...         return np.log(parameters)
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
    space: StanSpace
    has_gradient: bool = eqx.field(static=True, default=True)

    def __init__(
        self,
        program: AbstractProgram,
        data: Mapping[str, Any] | None = None,
        *,
        types: Mapping[str, str] | None = None,
        seed: int = 0,
        standardised: tuple[Standardised, ...] = (),
    ):
        parameters, transformed, generated = program.names
        self.program = program
        self.layout = Layout([*parameters, *transformed, *generated])
        data = {} if data is None else data
        self.groups = classify(dict(Layout(generated).shapes), data)
        self.data = _Named(data)
        self.seed = seed
        self.value = log_density_of(program)
        self.structure = Structure({UNCONSTRAINED: jnp.zeros(program.size)})
        self.space = StanSpace(program, dict(types or {}), standardised)
        self.has_gradient = True

    @property
    def shapes(self) -> Shapes:
        """Name and shape of every variable of a draw."""
        groups = (self.groups.log_likelihood, self.groups.predictive)
        elsewhere = {name for group in groups for name in group.values()}
        return tuple(item for item in self.layout.shapes if item[0] not in elsewhere)

    @property
    def rejections(self) -> int:
        """Points so far at which the program gave no density, and counted as zero."""
        return self.program.rejections

    def log_density(self, particle: dict, data: Any = None) -> Scalar:
        x, log_det = self.space.to_model_and_log_det(particle)
        return self.value(x[UNCONSTRAINED]) + log_det

    def recentred(self, spread: dict[str, Array]) -> "StanTarget | None":
        widths = np.asarray(spread[UNCONSTRAINED])
        kept = tuple(
            each.name
            for each in self.space.standardised
            if np.exp(np.mean(np.log(widths[list(each.positions)]))) > _INFORMED_SPREAD
        )
        return None if kept == self.space.decentred else self._in_coordinates(kept)

    def in_space(self, space: AbstractSpace) -> "StanTarget":
        if isinstance(space, SpaceOfModel):
            return self._in_coordinates(space.decentred)
        return self

    def _in_coordinates(self, decentred: tuple[str, ...]) -> "StanTarget":
        return StanTarget(
            self.program,
            self.data.values,
            types=dict(self.space.types),
            seed=self.seed,
            standardised=tuple(
                each for each in self.space.standardised if each.name in decentred
            ),
        )

    def describe(self, x: dict) -> dict[str, Array]:
        vector = jnp.asarray(x[UNCONSTRAINED])
        (flat,) = host_call(self._values, ((self._width,),), vector)
        values = self.layout.split(flat)
        return {name: values[name] for name, _ in self.shapes}

    def observed_data(self) -> dict[str, np.ndarray]:
        return {n: np.asarray(self.data.values[n]) for n in self.groups.observed}

    def log_likelihood(self, x: dict) -> dict[str, Array]:
        return self._generated(x, jnp.zeros(()), self.groups.log_likelihood)

    def predict(self, key: PRNGKeyArray, x: dict) -> dict[str, Array]:
        share = jax.random.uniform(key)
        return self._generated(x, share, self.groups.predictive)

    def _generated(self, x: dict, share: Scalar, names: dict[str, str]) -> dict:
        """Generated quantities of a draw, random ones by a number between 0 and 1."""
        if not names:
            return {}
        flat = self.space.flat(x)
        given = jnp.append(flat, jnp.asarray(share, flat.dtype))
        (out,) = host_call(self._values_again, ((self._width,),), given)
        values = self.layout.split(out)
        return {name: values[of] for name, of in names.items()}

    @property
    def _width(self) -> int:
        return sum(len(block) for block in self.program.names)

    def _values(self, x: np.ndarray) -> tuple[np.ndarray]:
        rows = x.reshape(-1, x.shape[-1])
        out = self.program.constrain(rows, np.full(len(rows), self.seed, np.uint64))
        return (np.asarray(out).reshape(*x.shape[:-1], -1),)

    def _values_again(self, given: np.ndarray) -> tuple[np.ndarray]:
        flat = given.reshape(-1, given.shape[-1])
        rows = self.space.unconstrained(flat[:, :-1])
        # All digits of a number in single precision, and a few more.
        seeds = (flat[:, -1] * 2**32).astype(np.uint64) + np.uint64(self.seed)
        out = self.program.constrain(rows, seeds)
        return (np.asarray(out).reshape(*given.shape[:-1], -1),)


class _Named:
    """Data that JAX compares by identity, where arrays could not be compared."""

    def __init__(self, values: Mapping[str, Any]):
        self.values = dict(values)
