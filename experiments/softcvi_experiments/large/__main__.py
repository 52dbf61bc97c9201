r"""Command of the study of large posteriors.

Everything, on 16 cores, each run on one of them, twice nine minutes::

    python -m softcvi_experiments.large --jobs 16 --limit 520 --timeout 400 \
        --methods reference nuts --out results/large
    python -m softcvi_experiments.large --jobs 16 --limit 520 --timeout 400 \
        --methods fit elbo fit_until guides --out results/large

One posterior, without the references::

    python -m softcvi_experiments.large --cases walk-150 --methods fit nuts

Only the table, from what the folder has::

    python -m softcvi_experiments.large --cases --out results/large

Without Git, name the commit in ``SOFTCVI_COMMIT``. The command continues where it was
interrupted; ``--limit`` stops it after so many seconds. It needs NumPyro.
"""

import argparse
import os

from softcvi_experiments.large._cases import CASES
from softcvi_experiments.large._methods import METHODS
from softcvi_experiments.large._study import Study, run_study
from softcvi_experiments.stopping import say, stopped_after


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m softcvi_experiments.large",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--cases", nargs="*", metavar="CASE", default=list(CASES), help=", ".join(CASES)
    )
    add("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    add("--keys", nargs="+", type=int, default=[0], help="runs on each posterior")
    add("--pairs", type=int, default=4, help="pairs of chains of each reference")
    add("--threads", type=int, choices=[0, 1], default=1, help="0: all of a process")
    add("--small", action="store_true", help="small forms, to try the command")
    add("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    add("--timeout", type=float, default=480.0, help="seconds for each run")
    add("--limit", type=int, help="stop the study after so many seconds")
    add("--out", default="softcvi-large", help="output folder")
    return parser


def main() -> None:
    """Run the study that the command line asks for."""
    args = _parser().parse_args()
    study = Study(args.cases, args.methods, args.keys, args.small, args.pairs)
    with stopped_after(args.limit):
        run_study(
            study,
            args.out,
            jobs=args.jobs,
            timeout=args.timeout,
            threads=args.threads or None,
            report=say,
        )
    say(f"wrote {os.path.join(args.out, 'large.md')}")


if __name__ == "__main__":
    main()
