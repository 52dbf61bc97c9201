r"""Command of the study of the verdict.

Development families, two posteriors each, two methods::

    python -m softcvi_experiments.verdict --split development --seeds 0-1 --jobs 2

The held-out run, made once for a state of the program. 37 families with 10 posteriors
each and two runs per posterior, on 16 cores::

    PYTHONPATH=.offline:.:experiments python3 -m softcvi_experiments.verdict \
        --split held-out --seeds 0-9 --keys 0-1 --jobs 16 --out results/verdict

Fixed cases (many modes, many parameters, funnel), five runs each; the grid of two
normals has an entry for each of 180 seeds::

    python -m softcvi_experiments.verdict --split cases --seeds 0 --keys 0-4
    python -m softcvi_experiments.verdict --split cases --families two-normals-grid \
        --seeds 0-179

Without Git, name the commit in ``SOFTCVI_COMMIT``. The command continues where it was
interrupted; ``--limit`` stops it after so many seconds. It needs JAX, NumPy and SciPy
beside the packages of softcvi; ``--methods nuts`` needs NumPyro, ``pathfinder``
BlackJAX.
"""

import argparse
import os

from softcvi_experiments.stopping import say, stopped_after
from softcvi_experiments.verdict._families import SPLITS
from softcvi_experiments.verdict._methods import METHODS
from softcvi_experiments.verdict._study import Study, run_study


def _numbers(text: str) -> tuple[int, ...]:
    """``0-3,7`` as numbers."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m softcvi_experiments.verdict",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--split", choices=list(SPLITS), default="development")
    add("--methods", nargs="+", choices=list(METHODS), default=["fit", "fit_until"])
    add("--families", nargs="+", help="only these families of the split")
    add("--seeds", type=_numbers, default=(0, 1), help="posteriors of each family")
    add("--keys", type=_numbers, default=(0,), help="runs on each posterior")
    add("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    add("--timeout", type=float, default=300.0, help="seconds for each case")
    add("--limit", type=int, help="stop the study after so many seconds")
    add("--x64", action="store_true", help="compute in double precision")
    add("--out", default="softcvi-verdict", help="output folder")
    return parser


def main() -> None:
    """Run the study that the command line asks for."""
    args = _parser().parse_args()
    study = Study(
        args.split, args.methods, args.seeds, args.keys, args.families, args.x64
    )
    with stopped_after(args.limit):
        run_study(study, args.out, jobs=args.jobs, timeout=args.timeout, report=say)
    say(f"wrote {os.path.join(args.out, 'verdict.md')}")


if __name__ == "__main__":
    main()
