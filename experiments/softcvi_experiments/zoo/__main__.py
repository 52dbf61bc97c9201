"""``python -m softcvi_experiments.zoo``: make the references of the zoo."""

import argparse
import json
from pathlib import Path

from softcvi_experiments.zoo._build import build_and_save, build_references
from softcvi_experiments.zoo._case import run_case
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
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        model, method, seeds = options.case
        for i, seed in enumerate(seeds.split(",")):
            record = run_case(model, method, int(seed), options.folder)
            # Later seeds find their programs compiled: not what a user waits for.
            print(json.dumps(record | {"compiled_before": i > 0}), flush=True)
        return
    if options.one:
        print(build_and_save(options.one, options.folder, options.seed, options.effort))
        return
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
