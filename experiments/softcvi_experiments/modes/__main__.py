"""Command of the study of many modes.

Forty normals, products of t, spikes with five keys each and the grid of two normals::

    python -m softcvi_experiments.modes --keys 0-4 --jobs 16 --out results/modes

It continues where it was interrupted; ``--limit`` stops it after so many seconds.
"""

from softcvi_experiments.modes._study import Study
from softcvi_experiments.study import command

if __name__ == "__main__":
    command(Study, __doc__)
