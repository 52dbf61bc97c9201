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

from softcvi_experiments.large._cases import CASES
from softcvi_experiments.large._methods import METHODS
from softcvi_experiments.large._study import Study
from softcvi_experiments.study import command


def _options(add) -> None:
    names = ", ".join(CASES)
    add("--cases", nargs="*", metavar="CASE", default=list(CASES), help=names)
    add("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    add("--keys", nargs="+", type=int, default=[0], help="runs on each posterior")
    add("--pairs", type=int, default=4, help="pairs of chains of each reference")
    add("--threads", type=int, choices=[0, 1], default=1, help="0: all of a process")
    add("--small", action="store_true", help="small forms, to try the command")


def _study(told: argparse.Namespace) -> Study:
    threads = told.threads or None
    return Study(told.cases, told.methods, told.keys, told.small, told.pairs, threads)


if __name__ == "__main__":
    command(Study, __doc__, _options, _study, timeout=480.0)
