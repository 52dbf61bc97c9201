"""``python -m softcvi_experiments.zoo``: make the references of the zoo."""

import argparse
from pathlib import Path

from softcvi_experiments.zoo._build import build_references
from softcvi_experiments.zoo._reference import FOLDER


def main() -> None:
    """Parse the arguments and make the references asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", help="names, separated by commas (default: all)")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--effort", type=float, default=1.0)
    parser.add_argument("--overwrite", action="store_true")
    options = parser.parse_args()
    build_references(
        options.models.split(",") if options.models else None,
        folder=options.folder,
        processes=options.processes,
        seed=options.seed,
        effort=options.effort,
        overwrite=options.overwrite,
    )


if __name__ == "__main__":
    main()
