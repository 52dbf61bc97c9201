"""Run the command line as ``python -m softcvi``."""

import os
import sys

# Python looks for modules in the current folder first, which may be a stranger's:
# reading results in there must not run what lies beside them.
if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:
    del sys.path[0]

from softcvi.cli import main

if __name__ == "__main__":
    sys.exit(main())
