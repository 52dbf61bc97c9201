"""A NumPyro model with its arguments, arrays traced and everything else fixed."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from softcvi.adapters._extras import require

_PRIOR_DRAWS = 10
_SIMPLE = (bool, int, float, complex, str, bytes, type(None))
# What JAX raises when a model needs the value, and not only the shape, of an array.
_NEEDS_VALUE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


class Frozen:
    """Arguments that are part of the compiled program, compared by identity."""

    def __init__(self, treedef: Any, leaves: tuple):
        self.treedef = treedef
        self.leaves = leaves

    def _identity(self) -> tuple:
        return self.treedef, tuple(
            leaf if isinstance(leaf, _SIMPLE) else id(leaf) for leaf in self.leaves
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frozen) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


class ModelCall(eqx.Module):
    """``model(*args, **kwargs)``: numeric arrays among the arguments are leaves.

    So a change of the data needs no new compilation. A model that looks at the
    values of its data (a Python ``if``, ``np.unique``) gets them as constants.

    Args:
        model: The NumPyro model.
        args: Positional arguments.
        kwargs: Keyword arguments.

    Attributes:
        given: Data of observed sites, by name, that replace those of the arguments.
    """

    model: Callable = eqx.field(static=True)
    arrays: list
    frozen: Frozen = eqx.field(static=True)
    given: dict[str, Array]

    def __init__(self, model: Callable, args: tuple, kwargs: dict[str, Any]):
        leaves, treedef = jax.tree_util.tree_flatten((args, kwargs))
        traced = [_is_numeric(leaf) for leaf in leaves]
        self.model, self.given = model, {}
        pairs = list(zip(leaves, traced, strict=True))
        # In the precision of the fit, whatever NumPy has: a start that works in double
        # precision widens the whole program, and takes doubles for what they are.
        self.arrays = [jnp.asarray(leaf) if t else None for leaf, t in pairs]
        rest = (None if t else leaf for leaf, t in pairs)
        self.frozen = Frozen(treedef, tuple(rest))
        if any(traced) and _needs_values(self):
            self.arrays = [None] * len(leaves)
            self.frozen = Frozen(treedef, tuple(leaves))
            # What JAX computes from its own arrays while it traces has no values.
            if _needs_values(self):
                self.frozen = Frozen(treedef, tuple(map(_as_numpy, leaves)))

    def arguments(self) -> tuple[tuple, dict[str, Any]]:
        """The arguments of the model, put together again."""
        leaves = [
            fixed if array is None else _widened(array)
            for array, fixed in zip(self.arrays, self.frozen.leaves, strict=True)
        ]
        return jax.tree_util.tree_unflatten(self.frozen.treedef, leaves)

    def trace(
        self,
        *handlers: Callable[[Callable], Callable],
        key: PRNGKeyArray | None = None,
        validate: bool = False,
    ) -> dict[str, dict]:
        """Run the model under handlers, innermost first, and return its trace.

        Args:
            *handlers: Functions from a model to a model.
            key: Seed of whatever is not substituted; a fixed one by default.
            validate: Whether NumPyro looks at the arguments of distributions. Once is
                enough: it does so by programs of its own, which take long to compile.
        """
        numpyro = require("numpyro", "numpyro")
        with numpyro.validation_enabled(validate):
            return self._seeded(handlers, key)

    def _seeded(
        self,
        handlers: tuple[Callable[[Callable], Callable], ...],
        key: PRNGKeyArray | None,
    ) -> dict[str, dict]:
        if key is not None:
            return self._trace(handlers, key)
        # A draw of a wide prior may overflow to parameters that NumPyro refuses; a
        # parameter that is wrong for every draw is the user's to mend.
        for seed in range(_PRIOR_DRAWS - 1):
            try:
                return self._trace(handlers, jax.random.key(seed))
            except ValueError as error:
                if "got invalid" not in str(error):
                    raise
        return self._trace(handlers, jax.random.key(_PRIOR_DRAWS - 1))

    def handled(
        self, *handlers: Callable[[Callable], Callable], key: PRNGKeyArray
    ) -> Callable:
        """The model seeded and under handlers, innermost first.

        Args:
            *handlers: Functions from a model to a model.
            key: Seed of whatever is not substituted.
        """
        numpyro = require("numpyro", "numpyro")
        model = self.model
        if self.given:
            model = numpyro.handlers.condition(model, data=self.given)
        model = numpyro.handlers.seed(model, key)
        for handler in handlers:
            model = handler(model)
        return model

    def _trace(
        self, handlers: tuple[Callable[[Callable], Callable], ...], key: PRNGKeyArray
    ) -> dict[str, dict]:
        numpyro = require("numpyro", "numpyro")
        model = self.handled(*handlers, key=key)
        args, kwargs = self.arguments()
        recorder = numpyro.handlers.trace(model)
        try:
            return recorder.get_trace(*args, **kwargs)
        except _NEEDS_VALUE as error:
            raise ValueError(
                f"model: {_place(recorder)} needs the value of a latent or of traced "
                "data where only its shape is known: a Python if, int(...), or a shape "
                "that depends on a sampled value. Use jnp.where or a fixed shape with "
                "a mask; a function that no handler can trace goes through "
                f"softcvi.adapters.from_callable. ({_first_line(error)})"
            ) from error
        except Exception as error:
            error.add_note(f"while running the NumPyro model, {_place(recorder)}")
            raise


def substitute(values: dict[str, Any]) -> Callable[[Callable], Callable]:
    """A handler that fixes sites to values."""
    numpyro = require("numpyro", "numpyro")
    return lambda model: numpyro.handlers.substitute(model, data=values)


def _needs_values(call: ModelCall) -> bool:
    numpyro = require("numpyro", "numpyro")
    draw = lambda model: numpyro.handlers.substitute(  # noqa: E731
        model, substitute_fn=draw_improper
    )

    def run(call):
        call.trace(draw)
        return 0

    try:
        eqx.filter_eval_shape(run, call)
    except ValueError as error:
        return isinstance(error.__cause__, _NEEDS_VALUE)
    return False


def moving_sites(
    call: ModelCall,
    latents: dict[str, dict],
    arrays_of: Callable[[dict], Any],
    names: tuple[str, ...] | None = None,
) -> tuple[str, ...]:
    """Names of the sites with something that depends on latent sites.

    Args:
        call: The model.
        latents: The latent sites, with a value each.
        arrays_of: What to look at, a pytree made from a site.
        names: The sites to look at; the latent ones by default.
    """
    numpyro = require("numpyro", "numpyro")
    found: list[str] = []

    def run(values: dict[str, Any]) -> int:
        # What follows from latents is batched as they are, constants are not.
        batched = tuple({type(value) for value in values.values()})
        trace = call.trace(
            substitute(values),
            lambda m: numpyro.handlers.substitute(m, substitute_fn=draw_improper),
        )
        for name in values if names is None else names:
            leaves = jax.tree_util.tree_leaves(arrays_of(trace[name]))
            if any(isinstance(leaf, batched) for leaf in leaves):
                found.append(name)
        return 0

    values = {
        name: jax.ShapeDtypeStruct(
            (1, *jnp.shape(site["value"])), jnp.result_type(site["value"])
        )
        for name, site in latents.items()
    }
    if values:
        jax.eval_shape(jax.vmap(run), values)  # traced, not computed
    return tuple(found)


def is_in_loop(site: dict) -> bool:
    """Whether a site lies inside ``numpyro.contrib.control_flow.scan``."""
    return bool(site.get("_control_flow_done", False))


def draw_improper(site: dict) -> Any:
    """For ``substitute``: a value for a site whose prior cannot be drawn from."""
    if site["type"] != "sample" or site["is_observed"] or site["value"] is not None:
        return None
    if not is_improper(site["fn"]):
        return None
    numpyro = require("numpyro", "numpyro")
    return numpyro.infer.init_to_uniform(site)


def is_improper(fn: Any) -> bool:
    """Whether a distribution cannot be drawn from."""
    numpyro = require("numpyro", "numpyro")
    while fn is not None:
        if isinstance(fn, numpyro.distributions.ImproperUniform):
            return True
        fn = getattr(fn, "base_dist", None)
    return False


def _is_numeric(leaf: Any) -> bool:
    if isinstance(leaf, jax.Array):
        return True
    return isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biuf"


def _as_numpy(leaf: Any) -> Any:
    return np.asarray(leaf) if _is_numeric(leaf) else leaf


def _widened(array: Any) -> Any:
    """In double precision all floats are doubles, so that loops keep one dtype."""
    array = jnp.asarray(array)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        return array
    wanted = jnp.promote_types(array.dtype, jnp.result_type(float))
    # Where it is a double already, asking for doubles would be warned of.
    return array if array.dtype == wanted else array.astype(wanted)


def _place(recorder: Any) -> str:
    names = list(getattr(recorder, "trace", {}))
    return f"after site '{names[-1]}'" if names else "before its first site"


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
