"""``python -m softcvi_experiments.stan [--out FOLDER] [NAME ...]``: the comparison."""

import argparse
from pathlib import Path

import jax

from softcvi_experiments.stan import METHODS, names, record, write_page


def main() -> None:
    """Compare the programs that are named, or all, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; else all")
    parser.add_argument("--out", type=Path, default=Path("results/stan"))
    parser.add_argument(
        "--methods", nargs="+", choices=list(METHODS), default=[*METHODS]
    )
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    programs = args.names or names()
    for row in record(programs, args.out, methods=args.methods, seed=args.seed):
        print(row, flush=True)
    write_page(args.out)


if __name__ == "__main__":
    main()
