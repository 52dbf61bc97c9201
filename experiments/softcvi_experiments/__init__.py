"""The paper's experiments, on the public interface alone."""

import lazy_loader

# The names are in __init__.pyi and are loaded when they are first used: the study of
# the verdict needs none of the paper's experiments, nor the packages that these need.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
