"""Names of the classes and functions that a stored file may hold.

A file names what users can name themselves (``softcvi.guides.FullRankNormal``), so that
moving code never breaks a stored posterior. Nothing else can be read back: a file from
elsewhere cannot name code that acts.
"""

import importlib
from collections.abc import Iterator
from typing import Any

import equinox as eqx

# Modules whose public names may stand in a file, the most specific first.
_MODULES = (
    "softcvi.guides",
    "softcvi.targets",
    "softcvi.demo",
    "softcvi.adapters.numpyro",
    "softcvi_experiments.tasks",
    "flowjax.bijections",
    "flowjax.distributions",
    "paramax",
    "equinox.nn",
    "jax.nn",
    "jax.numpy",
    "jax.lax",
    "numpyro.distributions.transforms",
    "numpyro.distributions.constraints",
    "numpyro.distributions",
)
# Functions are called when a guide is used, so those of a file must be mathematics:
# whole packages also hold functions that read, write or evaluate.
_FUNCTION_HOMES = (
    "softcvi.guides",
    "softcvi.targets",
    "softcvi.demo",
    "softcvi_experiments.tasks",
    "flowjax.bijections",
    "flowjax.distributions",
    "flowjax.utils",
    "paramax.utils",
    "equinox.nn",
    "jax._src.nn.functions",
    "jax._src.numpy.ufuncs",
    "jax._src.lax.lax",
)
# These modules hold functions that read and write too, so each one is named.
_ELEMENTWISE_HOMES = ("jax.numpy", "jax.lax")
_ELEMENTWISE = frozenset(
    {
        *("abs", "arcsinh", "arctan", "cos", "cosh", "exp", "expm1", "log", "log1p"),
        *("logistic", "maximum", "minimum", "negative", "sign", "sin", "sinh"),
        *("sqrt", "square", "tanh"),
    }
)
_CLASS_PACKAGES = frozenset(
    ["softcvi", "softcvi_experiments", "flowjax", "paramax", "equinox", "numpyro"]
)
# What guides are made of and no package exports: a name of ours, and where it is.
_UNEXPORTED = {
    "softcvi.stored.identity": ("equinox.nn._mlp", "_identity"),
    "softcvi.stored.moved": ("softcvi.guides._parameters", "_moved"),
    "softcvi.stored.scaled_softplus": (
        "softcvi.guides._parameters",
        "_scaled_softplus",
    ),
    "softcvi.stored.Single": ("softcvi.guides._stack", "Single"),
    "softcvi.stored.Stack": ("softcvi.guides._stack", "Stack"),
}
# Files of format 1 name the module that something was in when they were written.
_MOVED = {
    "jax._src.nn.functions": "jax.nn",
    "jax._src.numpy.ufuncs": "jax.numpy",
    "jax._src.lax.lax": "jax.lax",
    "softcvi.experiments.tasks": "softcvi_experiments.tasks",
    "softcvi.adapters._numpyro_space": "softcvi.adapters.numpyro",
}


def name_of(thing: Any) -> str | None:
    """The name under which a class or function can be found again, if there is one.

    Args:
        thing: A class or function.

    Example:
        >>> from softcvi.guides import VectorGuide
        >>> name_of(VectorGuide)
        'softcvi.guides.VectorGuide'
        >>> name_of(open) is None
        True
    """
    home = str(getattr(thing, "__module__", None))
    own_name = str(getattr(thing, "__name__", ""))
    for name, (module, attribute) in _UNEXPORTED.items():
        is_near = module.split(".")[0] == home.split(".")[0]
        if is_near and getattr(_imported(module), attribute) is thing:
            return name
    for module_name in _modules_of(home):
        if _public(module_name, own_name) is thing:
            names = [own_name]
        else:
            # An anonymous function may still be bound to a name.
            public = vars(_imported(module_name))
            names = [name for name, value in public.items() if value is thing]
        if names and _is_known(thing):
            return f"{module_name}.{names[0]}"
    return None


def found(name: str) -> Any:
    """The class or function of a name.

    Args:
        name: As ``name_of`` gives it, or ``module:name`` as format 1 wrote it.

    Raises:
        ValueError: If there is none, or it is not one that a file may name.

    Example:
        >>> found("softcvi.guides._gaussian:FullRankNormal").__name__
        'FullRankNormal'
    """
    if not isinstance(name, str):
        raise ValueError("a name is missing")
    if name in _UNEXPORTED:
        module, attribute = _UNEXPORTED[name]
        return getattr(_imported(module), attribute)
    for module, attribute in _places(name):
        thing = _public(module, attribute)
        if thing is not None and _is_known(thing):
            return thing
    raise ValueError(f"{name} is not a known class or function")


def _public(module_name: str, attribute: str) -> Any:
    """What a module has under a name, loaded on demand where it declares the name."""
    module = _imported(module_name)
    if attribute in getattr(module, "__all__", ()):
        return getattr(module, attribute)
    return vars(module).get(attribute)


def _places(name: str) -> Iterator[tuple[str, str]]:
    """Public modules, and names in them, that a stored name may mean."""
    old_module, is_old, old_name = name.partition(":")
    if not is_old:
        module, _, attribute = name.rpartition(".")
        if module in _MODULES:
            yield module, attribute
        return
    for unexported in _UNEXPORTED.values():
        if unexported == (old_module, old_name):
            yield unexported
    for before, now in _MOVED.items():
        if f"{old_module}.".startswith(f"{before}."):
            yield now, old_name
    for module in _MODULES:
        if f"{old_module}.".startswith(f"{module}."):
            yield module, old_name
    if old_module.split(".")[0] == "paramax":
        yield "paramax", old_name


def _modules_of(home: str) -> Iterator[str]:
    root = home.split(".")[0]
    for module in _MODULES:
        if module.split(".")[0] == root:
            yield module


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"{module} is not installed ({error})") from error


def _is_known(thing: Any) -> bool:
    home = str(getattr(thing, "__module__", None))
    if isinstance(thing, type):
        is_pytree = issubclass(thing, eqx.Module) or hasattr(thing, "tree_flatten")
        return is_pytree and home.split(".")[0] in _CLASS_PACKAGES
    if home in _ELEMENTWISE_HOMES:
        return getattr(thing, "__name__", "") in _ELEMENTWISE
    return callable(thing) and any(
        f"{home}.".startswith(f"{module}.") for module in _FUNCTION_HOMES
    )
