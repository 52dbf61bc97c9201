"""Command of the study of NumPyro's own models.

    python -m softcvi_experiments.neighbours --out results/neighbours

It continues where it was interrupted.
"""

from softcvi_experiments.neighbours._table import Study
from softcvi_experiments.study import command

if __name__ == "__main__":
    command(Study, __doc__)
