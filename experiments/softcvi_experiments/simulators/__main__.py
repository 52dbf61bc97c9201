"""``python -m softcvi_experiments.simulators [--out FOLDER] [NAME ...]``."""

import argparse
from pathlib import Path

from softcvi_experiments.simulators import METHODS, SIMULATORS, record, write_page


def main() -> None:
    """Run methods on simulators and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="simulators; else all")
    parser.add_argument("--out", type=Path, default=Path("results/simulators"))
    parser.add_argument(
        "--methods", nargs="+", choices=list(METHODS), default=[*METHODS]
    )
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    names = args.names or [*SIMULATORS]
    for row in record(names, args.out, methods=args.methods, seeds=args.seeds):
        print(row, flush=True)
    write_page(args.out)


if __name__ == "__main__":
    main()
