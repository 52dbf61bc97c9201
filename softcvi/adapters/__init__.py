"""Adapters: models of other packages as targets, and results in their formats.

Nothing here imports NumPyro, PyMC, Stan or ArviZ before it is used; a name whose
package is absent says which extra installs it.
"""

import lazy_loader

# The names are in __init__.pyi and are loaded when they are first used: who has a
# NumPyro model does not wait for what PyMC, Stan and BlackJAX need.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
