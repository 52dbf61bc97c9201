"""What every battery shares: precisions, and a look at what a package exports."""

import inspect
from types import ModuleType

import jax
import jax.numpy as jnp
import pytest


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    """One test in each precision, with JAX set to it."""
    with jax.enable_x64(request.param == "float64"):
        yield jnp.dtype(request.param)


@pytest.fixture(scope="session")
def exported():
    """Concrete classes of an interface among a package's public names."""

    def find(package: ModuleType, *interfaces: type) -> set[type]:
        public = [getattr(package, name) for name in package.__all__]
        return {
            value
            for value in public
            if inspect.isclass(value)
            if issubclass(value, interfaces)
            if not value.__name__.startswith("Abstract")
        }

    return find
