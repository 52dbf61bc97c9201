"""Stan's unconstrained space, and the way into it from named parameters."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Scalar

from softcvi.adapters.stan._callbacks import host_call
from softcvi.adapters.stan._decentre import Standardised
from softcvi.adapters.stan._program import AbstractProgram, Layout
from softcvi.adapters.stan._rounding import exact
from softcvi.targets import AbstractSpace, Informed, SpaceOfModel

UNCONSTRAINED = "unconstrained"


class StanSpace(AbstractSpace):
    """The unconstrained vector of a Stan program, parts of it standardised.

    What is called the model's coordinates here is Stan's unconstrained vector, on which
    all densities are given. Draws have the program's own names;
    ``from_model_and_log_det`` takes these too, so that a point of the model can be a
    start.

    Args:
        program: The program.
        types: Types of its parameters by name, as far as they are known.
        standardised: Parameters that are fitted in standardised coordinates, parents
            before their children.
        informed: What the data say of these, by name, where that is used.
    """

    program: AbstractProgram = eqx.field(static=True)
    layout: Layout = eqx.field(static=True)
    types: Any = eqx.field(static=True)
    standardised: tuple[Standardised, ...] = eqx.field(static=True)
    informed: Mapping[str, Informed]

    def __init__(
        self,
        program: AbstractProgram,
        types: dict[str, str],
        standardised: tuple[Standardised, ...] = (),
        informed: Mapping[str, Informed] | None = None,
    ):
        self.program = program
        self.layout = Layout(program.names[0])
        self.types = tuple(types.items())
        self.standardised = standardised
        self.informed = {} if informed is None else informed

    @property
    def decentred(self) -> tuple[str, ...]:
        """Names of the parameters that are fitted in standardised coordinates."""
        return tuple(each.name for each in self.standardised)

    def to_model_and_log_det(self, u: dict) -> tuple[dict, Scalar]:
        vector, total = u[UNCONSTRAINED], jnp.zeros(())
        for each in self.standardised:
            vector, log_det = each.forward(vector, self.informed.get(each.name))
            total = total + log_det
        return {UNCONSTRAINED: vector}, total

    def from_model_and_log_det(self, x: dict) -> tuple[dict, Scalar]:
        if UNCONSTRAINED in x:
            vector = x[UNCONSTRAINED]
        else:
            (vector,) = host_call(self._back, ((self.program.size,),), self.flat(x))
        total = jnp.zeros(())
        for each in reversed(self.standardised):
            vector, log_det = each.inverse(vector, self.informed.get(each.name))
            total = total + log_det
        return {UNCONSTRAINED: vector}, total

    def flat(self, x: dict[str, Array]) -> Array:
        """The parameters of one draw as a vector, in the program's order."""
        missing = [name for name, _ in self.layout.shapes if name not in x]
        if missing:
            raise ValueError(
                f"x: the program also has the parameters {', '.join(missing)}; give "
                "all of them."
            )
        x = {name: jnp.asarray(x[name], float) for name, _ in self.layout.shapes}
        return self.layout.join(x)

    def unconstrained(self, parameters: np.ndarray) -> np.ndarray:
        """Unconstrained vectors of rows of parameters, on the host."""
        named = self.layout.split(parameters)
        types = dict(self.types)
        fixed = {name: exact(v, types.get(name, "")) for name, v in named.items()}
        return self.program.unconstrain(self.layout.join_rows(fixed))

    def _back(self, x: np.ndarray) -> tuple[np.ndarray]:
        out = self.unconstrained(x.reshape(-1, x.shape[-1]))
        return (out.reshape(*x.shape[:-1], -1),)

    def stored(self) -> AbstractSpace:
        return SpaceOfModel(self.decentred, self.informed)
