"""What every target offers: an unnormalised log density on a pytree of arrays.

Beside it: targets around another one, and a check of what a user's function returns.
"""

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar

from softcvi.targets._space import AbstractSpace
from softcvi.targets._structure import Structure


class AbstractTarget(eqx.Module):
    """An unnormalised posterior ``p(theta, x)`` on the fitting space.

    Attributes:
        structure: Names, shapes and dtypes of one particle in the fitting space.
        space: The bijection from the fitting space to the model's coordinates.
        has_gradient: Whether JAX can differentiate the log density.
        amortised: Whether each datum has latents of its own, so that the guide is
            conditioned on the datum and labels are normalised per datum.

    Example:
        >>> import equinox as eqx, jax.numpy as jnp, softcvi
        >>> class Normal(softcvi.targets.AbstractTarget):
        ...     space: softcvi.targets.ModelSpace = softcvi.targets.ModelSpace()
        ...     structure: softcvi.targets.Structure = eqx.field(
        ...         static=True, default=softcvi.targets.Structure({"x": 0.0})
        ...     )
        ...     has_gradient: bool = eqx.field(static=True, default=True)
        ...
        ...     def log_density(self, particle, data=None):
        ...         return -0.5 * particle["x"] ** 2
        >>> Normal().log_density({"x": 2.0})
        -2.0
    """

    amortised: ClassVar[bool] = False
    # Whether the log density goes through ``space`` as it is, so that another can be
    # put before it.
    maps_by_space: ClassVar[bool] = False

    structure: eqx.AbstractVar[Structure]
    space: eqx.AbstractVar[AbstractSpace]
    has_gradient: eqx.AbstractVar[bool]

    @abstractmethod
    def log_density(self, particle: PyTree, data: Any = None) -> Scalar:
        """Log density of one particle in the fitting space, Jacobian included."""

    @property
    def local_sites(self) -> tuple[str, ...]:
        """Sites of groups that are independent given the others; none by default."""
        return ()

    def local_terms(
        self, particle: PyTree, data: Any = None
    ) -> tuple[Scalar, Float[Array, " groups"]]:
        """The global term of the log density, and one term for each group."""
        raise NotImplementedError(
            f"{type(self).__name__} has no local terms; ask local_sites first."
        )

    @property
    def like(self) -> PyTree:
        """One particle of the fitting space as ``jax.ShapeDtypeStruct``s."""
        return self.structure.like

    def initial_particle(self, key: PRNGKeyArray) -> PyTree:
        """One dispersed starting point, by default uniform on (-2, 2) as in Stan."""
        vector = jax.random.uniform(key, (self.structure.size,), float, -2, 2)
        return jax.tree_util.tree_map(
            lambda value, like: (
                value.astype(like.dtype)
                if jnp.issubdtype(like.dtype, jnp.floating)
                else jnp.zeros_like(value, like.dtype)
            ),
            self.structure.unravel(vector),
            self.like,
        )

    @property
    def standardised(self) -> PyTree | None:
        """Which scalars of a particle are standardised by others and need not be."""
        return None

    def recentred(
        self,
        mean: dict[str, Array],
        spread: dict[str, Array],
        draws: dict[str, Array] | None = None,
    ) -> "AbstractTarget | None":
        """The same posterior in coordinates that suit it better; None for these.

        Args:
            mean: Mean in the fitting space, by name, from a start.
            spread: Standard deviations there; those of standardised scalars are given
                the scalars that are not.
            draws: Draws of a normal with the moments that the start has found.
        """
        return None

    def in_space(self, space: AbstractSpace) -> "AbstractTarget":
        """The target in the coordinates of a stored fit, where it has a choice."""
        return self

    def describe(self, x: PyTree) -> dict[str, Array]:
        """Named arrays that a user sees for one particle in model coordinates."""
        if isinstance(x, dict):
            return x
        leaves = jax.tree_util.tree_leaves(x)
        return dict(zip(self.structure.names, leaves, strict=True))

    @property
    def model_warnings(self) -> tuple[str, ...]:
        """What is suspicious about the model itself; each speaks against the answer."""
        return ()

    def model_parameters(self) -> dict[str, Any]:
        """Parameters that the model declares as trained, as the model sees them.

        ``fit`` trains them beside the guide (``WithModelTerm``) where there are any.
        """
        return {}

    def num_values(self) -> dict[str, int]:
        """How many values each discrete leaf can take, as far as that is known."""
        return {}

    @property
    def operations_of_call(self) -> int | None:
        """What a log density outside of JAX takes, counted; None if that is unknown."""
        return None

    @property
    def particles_at_once(self) -> int | None:
        """How many log densities fit into memory at a time; None for any number."""
        return None

    @property
    def unwrapped(self) -> "AbstractTarget":
        """The target as the user made it, where this one only evaluates it."""
        return self

    @property
    def log_offset(self) -> float:
        """A constant that log densities lack, and that an evidence needs."""
        return 0.0

    def thinned(self) -> "tuple[AbstractTarget, float] | None":
        """A cheaper posterior with nearly the same places, to search for them first.

        Returns:
            The posterior given a sample of the rows, each counted several times, and
            how many times; None where there are no rows that could be left out.
        """
        return None

    def simulate(self, key: PRNGKeyArray) -> tuple[PyTree, PyTree]:
        """Parameters from the prior, in model coordinates, and data given them."""
        raise NotImplementedError(
            "target: it cannot simulate data; give simulate=, a function of a key that "
            "returns parameters and data."
        )

    def with_observed(self, observed: PyTree) -> "AbstractTarget":
        """The posterior given other data of the same shapes.

        Args:
            observed: The data, as ``simulate`` returns them.
        """
        raise NotImplementedError(
            "target: its data cannot be replaced; use softcvi.DensityTarget(log_prob, "
            "like, observed=data) or softcvi.adapters.from_numpyro."
        )

    def draw_data(self, key: PRNGKeyArray) -> Any:
        """The data of one step: None unless the target works by mini-batches."""
        return None

    def trainable(self) -> PyTree:
        """Filter that is True at model parameters; by default there are none."""
        return jax.tree_util.tree_map(lambda _: False, self)


class AbstractWrapper(AbstractTarget):
    """A target whose particles are those of another one."""

    target: eqx.AbstractVar[AbstractTarget]

    @property
    def structure(self) -> Structure:
        return self.target.structure

    @property
    def space(self) -> AbstractSpace:
        return self.target.space

    @property
    def has_gradient(self) -> bool:
        return self.target.has_gradient


def check_observed(observed: PyTree, example: PyTree) -> None:
    """Refuse data of other shapes than those of a target."""
    shapes = [
        jax.tree_util.tree_map(lambda leaf: np.shape(leaf), data)
        for data in (observed, example)
    ]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"simulate: its data have shapes {shapes[0]}, where those of target have "
            f"{shapes[1]}."
        )


def as_log_density(value: Any, name: str = "log_prob") -> Float[ArrayLike, "..."]:
    """Refuse integers and booleans, which adding a Jacobian would hide, and None."""
    if value is None:
        raise TypeError(
            f"{name}: returned None. Check that every branch of the function returns "
            "the log density."
        )
    if not isinstance(value, jax.Array | np.ndarray | np.generic | float | int):
        raise TypeError(
            f"{name}: the log density must be a number; it is a "
            f"{type(value).__name__}. Return the number alone."
        )
    dtype = jnp.result_type(value)
    if not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(
            f"{name}: the log density must be a float; it is {dtype}. Return a float, "
            "e.g. with .astype(float)."
        )
    if dtype.itemsize < 4:
        raise TypeError(
            f"{name}: the log density is {dtype}, which is too coarse: large numbers "
            "are rounded by nats. Sum it in float32 or float64."
        )
    return value
