r"""Command of the study of the verdict.

Development families, two posteriors each, two methods::

    python -m softcvi_experiments.verdict --split development --seeds 0-1 --jobs 2

The held-out run, made once for a state of the program. 37 families with 10 posteriors
each and two runs per posterior, on 16 cores::

    PYTHONPATH=.offline:.:experiments python3 -m softcvi_experiments.verdict \
        --split held-out --seeds 0-9 --keys 0-1 --jobs 16 --out results/verdict

The third set of families, on two cores::

    python -m softcvi_experiments.verdict --split held-out-third --seeds 0-1 \
        --methods fit fit_until --jobs 1 --out results/verdict-third

Without Git, name the commit in ``SOFTCVI_COMMIT``. The command continues where it was
interrupted; ``--limit`` stops it after so many seconds. It needs JAX, NumPy and SciPy
beside the packages of softcvi; ``--methods nuts`` needs NumPyro, ``pathfinder``
BlackJAX.
"""

import argparse

from softcvi_experiments.study import command, numbers
from softcvi_experiments.verdict._families import SPLITS
from softcvi_experiments.verdict._methods import METHODS
from softcvi_experiments.verdict._study import Study


def _options(add) -> None:
    add("--split", choices=list(SPLITS), default="development")
    add("--methods", nargs="+", choices=list(METHODS), default=["fit", "fit_until"])
    add("--families", nargs="+", help="only these families of the split")
    add("--seeds", type=numbers, default=(0, 1), help="posteriors of each family")
    add("--keys", type=numbers, default=(0,), help="runs on each posterior")
    add("--x64", action="store_true", help="compute in double precision")


def _study(told: argparse.Namespace) -> Study:
    return Study(
        told.split, told.methods, told.seeds, told.keys, told.families, told.x64
    )


if __name__ == "__main__":
    command(Study, __doc__, _options, _study)
