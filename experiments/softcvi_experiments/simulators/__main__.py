"""Command of the study of simulators in NumPy.

    python -m softcvi_experiments.simulators --seeds 0-4 --out results/simulators

It continues where it was interrupted.
"""

from softcvi_experiments.simulators._compare import Study
from softcvi_experiments.study import command

if __name__ == "__main__":
    command(Study, __doc__)
