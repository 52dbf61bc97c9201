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

The fourth set, whose families were written without a look at the search::

    python -m softcvi_experiments.verdict --split held-out-fourth --seeds 0-7 \
        --methods fit --jobs 1 --out results/verdict-fourth

The fifth set, 107 families that were written without knowledge of the search::

    python -m softcvi_experiments.verdict --split held-out-fifth --seeds 0-2 \
        --methods fit --jobs 1 --out results/verdict-fifth

The sixth set, written without a look at the search either: two runs of both calls on
three posteriors of each family. The first posteriors of all families come first, in an
order that says nothing of them, so that ``--limit`` leaves a fair sample::

    python -m softcvi_experiments.verdict --split held-out-sixth --seeds 0-2 \
        --keys 0-1 --methods fit fit_until --jobs 14 --limit 520 \
        --out results/verdict-sixth

Without Git, name the commit in ``SOFTCVI_COMMIT``. The command continues where it was
interrupted; ``--limit`` stops it after so many seconds. It needs JAX, NumPy and SciPy
beside the packages of softcvi; ``--methods nuts`` needs NumPyro, ``pathfinder``
BlackJAX.
"""

from softcvi_experiments.study import command
from softcvi_experiments.verdict._study import Study

if __name__ == "__main__":
    command(Study, __doc__)
