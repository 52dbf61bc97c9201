"""``python -m softcvi_experiments.neighbours``: write the page of the documentation."""

import argparse
from pathlib import Path

from softcvi_experiments.neighbours import write_table

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/neighbours.md"))
    parser.add_argument("--steps", type=int, default=10_000)
    arguments = parser.parse_args()
    write_table(arguments.out, steps=arguments.steps)
