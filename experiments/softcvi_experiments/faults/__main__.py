r"""Command of the fault suite.

In small, on two cores::

    python -m softcvi_experiments.faults --jobs 2 --out results/faults

Fifty kills of each program, on 16 cores, within eight minutes::

    PYTHONPATH=.offline:.:experiments python3 -m softcvi_experiments.faults \
        --parts kills --kills 50 --jobs 16 --limit 460 --out results/faults

The command continues where it was interrupted. Without Git, name the commit in
``SOFTCVI_COMMIT``.
"""

import argparse
import os
import sys

from softcvi_experiments.faults._suite import PARTS, PROGRAMS, Faults, run_faults
from softcvi_experiments.stopping import say


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m softcvi_experiments.faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    small = Faults()
    add = parser.add_argument
    add("--parts", type=_words, default=PARTS, help=f"some of {','.join(PARTS)}")
    add("--programs", type=_words, default=PROGRAMS, help="only these programs")
    add("--kills", type=int, default=small.kills, help="SIGKILLs of each program")
    add("--files", type=int, default=small.files, help="damaged files in all")
    add("--formats", nargs="+", default=small.formats, help="only these kinds of files")
    add("--others", type=int, default=small.others, help="other faults per program")
    add("--steps", type=int, default=small.steps, help="steps of the long run")
    add("--resumes", type=int, default=small.resumes, help="pieces of one fit")
    add("--seed", type=int, default=small.seed, help="first seed")
    add("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    add("--timeout", type=float, default=900.0, help="seconds for each task")
    add("--limit", type=float, default=float("inf"), help="stop after so many seconds")
    add("--out", default="softcvi-faults", help="output folder")
    return parser


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def main() -> int:
    """Run the suite; the exit status is 1 if anything did not hold."""
    args = _parser().parse_args()
    faults = Faults(
        args.parts, args.programs, args.kills, args.files, args.others, args.steps,
        args.resumes, args.seed, args.formats,
    )  # fmt: skip
    records = run_faults(
        faults,
        args.out,
        jobs=args.jobs,
        timeout=args.timeout,
        limit=args.limit,
        report=say,
    )
    say(f"wrote {os.path.join(args.out, 'faults.md')}")
    return int(not all(record["ok"] for record in records))


if __name__ == "__main__":
    sys.exit(main())
