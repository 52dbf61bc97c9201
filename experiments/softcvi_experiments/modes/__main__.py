"""Command of the study of many modes.

Forty normals, products of t, spikes with five keys each and the grid of two normals::

    python -m softcvi_experiments.modes --keys 0-4 --jobs 16 --out results/modes

It continues where it was interrupted; ``--limit`` stops it after so many seconds.
"""

import argparse
import os

from softcvi_experiments.modes._cases import CASES
from softcvi_experiments.modes._study import run_study, tasks
from softcvi_experiments.stopping import say, stopped_after


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m softcvi_experiments.modes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    add("--methods", nargs="+", choices=["fit", "fit_until"], default=["fit_until"])
    add("--keys", default="0-4", help="runs of each case, such as 0-4")
    add("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    add("--timeout", type=float, default=300.0, help="seconds for each case")
    add("--limit", type=int, help="stop the study after so many seconds")
    add("--out", default="softcvi-modes", help="output folder")
    return parser


def main() -> None:
    """Run the study that the command line asks for."""
    args = _parser().parse_args()
    first, _, last = args.keys.partition("-")
    keys = range(int(first), int(last or first) + 1)
    with stopped_after(args.limit):
        run_study(
            tasks(args.cases, args.methods, keys),
            args.out,
            jobs=args.jobs,
            timeout=args.timeout,
            report=say,
        )
    say(f"wrote {os.path.join(args.out, 'modes.md')}")


if __name__ == "__main__":
    main()
