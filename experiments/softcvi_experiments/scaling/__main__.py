r"""Command of the study of what a step costs.

All cases, one process after the other, each on one thread::

    taskset -c 1 python -m softcvi_experiments.scaling --out results/scaling

It continues where it was interrupted; ``--limit`` stops it after so many seconds. Only
the page, from what the folder has::

    python -m softcvi_experiments.scaling --parts --out results/scaling
"""

from softcvi_experiments.scaling._study import Study
from softcvi_experiments.study import command

if __name__ == "__main__":
    command(Study, __doc__)
