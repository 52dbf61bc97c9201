"""``python -m softcvi_experiments.neighbours``: run what is not on record yet."""

import argparse
from pathlib import Path

from softcvi_experiments.neighbours import IDENTITY, run, table

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("softcvi-neighbours"))
    parser.add_argument("--steps", type=int, default=10_000)
    told = parser.parse_args()
    print(table(run(told.out, steps=told.steps).latest(*IDENTITY)))
