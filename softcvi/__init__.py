"""Bayesian inference by contrastive variational inference (SoftCVI), on JAX."""

import lazy_loader

__version__ = "0.1.0"

# The names are in __init__.pyi and are loaded when they are first used: the command
# line can say what it does without loading JAX.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
