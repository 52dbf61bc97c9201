"""Command of the study of Stan programs, in double precision.

    python -m softcvi_experiments.stan --out results/stan
    python -m softcvi_experiments.stan --programs garch11 --methods fit

It continues where it was interrupted. Times include compilation by JAX, not by C++.
"""

from softcvi_experiments.stan._page import Study
from softcvi_experiments.study import command

if __name__ == "__main__":
    command(Study, __doc__)
