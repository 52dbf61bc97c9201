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

from softcvi_experiments.large._study import Study
from softcvi_experiments.study import command

if __name__ == "__main__":
    command(Study, __doc__)
