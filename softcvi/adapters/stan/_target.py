"""The posterior of a Stan program as a target.

Stan has no names for log likelihoods and replicates of the data among the generated
quantities; users follow conventions: ``log_lik`` for the pointwise log likelihood,
``y_rep`` (or ``y_pred``, ``y_tilde``, ``y_sim``) for replicates of ``y``.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray, Scalar

from softcvi.adapters._model_target import AbstractModelTarget
from softcvi.adapters._recentre import goes_with, space_by_data
from softcvi.adapters.stan._callbacks import host_call, log_density_of
from softcvi.adapters.stan._decentre import Standardised
from softcvi.adapters.stan._program import AbstractProgram, Layout, Shapes
from softcvi.adapters.stan._space import UNCONSTRAINED, StanSpace
from softcvi.targets import AbstractSpace, Informed, SpaceOfModel, Structure

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
        standardised: Parameters to fit in standardised coordinates, parents before
            their children.
        informed: What the data say of these, by name, where that is used.

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
        informed: Mapping[str, Informed] | None = None,
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
        self.space = StanSpace(program, dict(types or {}), standardised, informed)
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

    @property
    def operations_of_call(self) -> int | None:
        return self.program.operations

    def log_density(self, particle: dict, data: Any = None) -> Scalar:
        x, log_det = self.space.to_model_and_log_det(particle)
        return self.value(x[UNCONSTRAINED]) + log_det

    @property
    def standardised(self) -> dict[str, np.ndarray] | None:
        if not self.space.standardised or self.space.informed:
            return None
        which = np.zeros(self.program.size, bool)
        for each in self.space.standardised:
            which[list(each.positions)] = True
        return {UNCONSTRAINED: which}

    def recentred(
        self, mean: dict[str, Array], spread: dict[str, Array], draws: Any = None
    ) -> "StanTarget | None":
        x = self.space.to_model(mean)[UNCONSTRAINED]
        priors = {each.name: each.prior(x) for each in self.space.standardised}
        found = (
            {
                each.name: np.asarray(part[UNCONSTRAINED])[list(each.positions)]
                for each in self.space.standardised
            }
            for part in (mean, spread)
        )
        space = space_by_data(priors, *found, relative=self._relative(draws))
        is_new = bool(space.informed) or space.decentred != self.space.decentred
        return self.in_space(space) if is_new else None

    def _relative(self, draws: dict[str, Array] | None) -> frozenset[str]:
        """Standardised parameters that go with their locations over some draws."""
        if draws is None:
            return frozenset()
        x = jax.vmap(self.space.to_model)(draws)[UNCONSTRAINED]
        return frozenset(
            each.name
            for each in self.space.standardised
            if each.walk is None
            and goes_with(x[:, list(each.positions)], jax.vmap(each.location)(x))
        )

    def in_space(self, space: AbstractSpace) -> "StanTarget":
        if not isinstance(space, SpaceOfModel):
            return self
        return StanTarget(
            self.program,
            self.data.values,
            types=dict(self.space.types),
            seed=self.seed,
            standardised=tuple(
                each for each in self.space.standardised if each.name in space.decentred
            ),
            informed=space.informed,
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
