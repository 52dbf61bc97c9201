"""Set up the build: where pictures are drawn from, and quiet libraries."""

import os
import re
import sys
import warnings
from pathlib import Path

# Set before JAX is imported: the docs are made on the CPU, wherever that is.
os.environ.setdefault("JAX_PLATFORMS", "cpu")


def on_pre_build(config) -> None:
    """Draw without a display, and keep compiled programs for the next build."""
    # Here and not above: mkdocs puts the path back after it has read a hook.
    sys.path.insert(0, str(Path(__file__).parent))
    import matplotlib as mpl

    import softcvi

    mpl.use("svg")
    mpl.rcdefaults()  # whatever matplotlibrc there is
    softcvi.enable_compilation_cache()
    warnings.filterwarnings("ignore", module="(pymc|pytensor|arviz).*")


def on_config(config):
    """Name the version on every page."""
    import softcvi

    config.copyright = f"softcvi {softcvi.__version__}, {config.copyright}"
    return config


def on_page_markdown(markdown: str, **kwargs) -> str:
    """Leave code as it is printed where nothing shall run, as in a test of links."""
    if os.environ.get("SOFTCVI_DOCS_RUN") != "no":
        return markdown
    return re.sub(r'^```python exec="on".*$', "```python", markdown, flags=re.M)
