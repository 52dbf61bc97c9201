"""Run the command line as ``python -m softcvi``."""

import sys

from softcvi.cli import main

if __name__ == "__main__":
    sys.exit(main())
