"""What the properties of classes share."""

import inspect

import pytest


@pytest.fixture(scope="session")
def exported():
    """Concrete classes of an interface among a package's public names."""

    def find(package, base):
        found = (getattr(package, name) for name in package.__all__)
        classes = {c for c in found if inspect.isclass(c) and issubclass(c, base)}
        return {c for c in classes if not c.__name__.startswith("Abstract")}

    return find
