"""Command of the study of many modes.

Forty normals, products of t, spikes with five keys each and the grid of two normals::

    python -m softcvi_experiments.modes --keys 0-4 --jobs 16 --out results/modes

It continues where it was interrupted; ``--limit`` stops it after so many seconds.
"""

from collections.abc import Sequence

from softcvi_experiments.modes._cases import CASES
from softcvi_experiments.modes._study import Study
from softcvi_experiments.study import command, numbers


def _options(add) -> None:
    add("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    add("--methods", nargs="+", choices=["fit", "fit_until"], default=["fit_until"])
    add("--keys", type=numbers, default=range(5), help="runs of each case, as 0-4")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study that the command line asks for."""
    command(
        Study,
        __doc__,
        _options,
        lambda told: Study(told.cases, told.methods, told.keys),
        arguments=arguments,
    )


if __name__ == "__main__":
    main()
