"""NumPyro: models, guides and a loss for its SVI."""

import lazy_loader

# The names are in __init__.pyi and are loaded when they are first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
