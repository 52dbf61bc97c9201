"""The paper's figures of draws: SLCP's modes, and marginals of one run."""

from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from softcvi.fitting import AbstractReporter
from softcvi_experiments._figures import marginals_figure, save_figure, slcp_figure
from softcvi_experiments._methods import PAPER_METHODS
from softcvi_experiments._reproduce import Reproduction, Say
from softcvi_experiments._run import fit_runs
from softcvi_experiments._settings import Settings, check_names
from softcvi_experiments.references import AbstractReferenceSource, get_source
from softcvi_experiments.store import Draws, DrawStore
from softcvi_experiments.tasks import RunData, get_task

SLCP_METHODS = (*PAPER_METHODS, "softcvi-0")
MARGINAL_TASKS = ("eight_schools", "linear_regression", "garch")
_NUM_DRAWS = 2_000


def reproduce_slcp(
    out: str | Path,
    *,
    methods: Sequence[str] = SLCP_METHODS,
    runs: int = 1,
    settings: Settings | None = None,
    data_dir: str | Path | None = None,
    progress: bool | AbstractReporter = True,
    say: Say = lambda line: None,
) -> Reproduction:
    """Draw the four modes of SLCP, reference draws in green.

    Args:
        out: Output folder.
        methods: Method names, alpha 0 among them by default.
        runs: Rows of the figure; the paper shows one, and six in its appendix.
        settings: What to run them with.
        data_dir: Folder or mirror to read references from.
        progress: Show bars.
        say: Told a line on each finished piece.

    Example:
        >>> import tempfile
        >>> reproduce_slcp(tempfile.mkdtemp(), methods=["softcvi-2"])
        Traceback (most recent call last):
        ...
        ValueError: unknown method 'softcvi-2'; known: softcvi-0.75, ...
    """
    settings = Settings() if settings is None else settings
    check_names(["slcp"], list(methods), runs)
    source = get_source(settings.reference, data_dir)
    store = DrawStore(out)
    draws = {
        method: _draws("slcp", method, runs, settings, source, store, progress, say)
        for method in methods
    }
    data = get_task("slcp").data(jax.random.key(0), list(range(runs)), source)
    references = [_reference(data, run) for run in range(runs)]
    files = save_figure(slcp_figure(draws, references), out, "slcp")
    return Reproduction([], "", files)


def reproduce_marginals(
    out: str | Path,
    *,
    tasks: Sequence[str] = MARGINAL_TASKS,
    methods: Sequence[str] = PAPER_METHODS,
    settings: Settings | None = None,
    data_dir: str | Path | None = None,
    progress: bool | AbstractReporter = True,
    say: Say = lambda line: None,
) -> Reproduction:
    """Box plots of the parameters of one run.

    Args:
        out: Output folder.
        tasks: Task names.
        methods: Method names.
        settings: What to run them with.
        data_dir: Folder or mirror to read references from.
        progress: Show bars.
        say: Told a line on each finished piece.

    Example:
        >>> import tempfile
        >>> result = reproduce_marginals(
        ...     tempfile.mkdtemp(), tasks=["linear_regression"], methods=["elbo"],
        ...     settings=Settings(steps=2), progress=False,
        ... )
        >>> result.files[0].name
        'marginals.png'
    """
    settings = Settings() if settings is None else settings
    check_names(list(tasks), list(methods), 1)
    source = get_source(settings.reference, data_dir)
    store = DrawStore(out)
    draws = {
        task: {
            method: _draws(task, method, 1, settings, source, store, progress, say)[0]
            for method in methods
        }
        for task in tasks
    }
    data_key = jax.random.split(jax.random.key(settings.seed), 4)[0]
    references = {
        task: _reference(get_task(task).data(data_key, [0], source), 0)
        for task in tasks
    }
    files = save_figure(marginals_figure(draws, references), out, "marginals")
    return Reproduction([], "", files)


def _draws(
    task: str,
    method: str,
    runs: int,
    settings: Settings,
    source: AbstractReferenceSource,
    store: DrawStore,
    progress: bool | AbstractReporter,
    say: Say,
) -> list[Draws]:
    identities = [
        {**settings.identity(task, method), "run": run} for run in range(runs)
    ]
    missing = [
        i for i, identity in enumerate(identities) if store.get(identity) is None
    ]
    if missing:
        # All runs: sums of a smaller program round differently, and a resumed figure
        # is to be the same as one without interruption.
        numbers = list(range(runs))
        fits = fit_runs(task, method, numbers, settings, source, progress=progress)
        for run in missing:
            drawn = fits.results[run].posterior.sample(fits.keys[run], _NUM_DRAWS)
            store.put(identities[run], {k: np.asarray(v) for k, v in drawn.items()})
    say(f"{task}, {method}: {runs} runs, {len(missing)} of them new")
    found = [store.get(identity) for identity in identities]
    return [draws for draws in found if draws is not None]


def _reference(data: RunData, run: int) -> Draws:
    index = int(data.data_set[run])
    return {name: np.asarray(values[index]) for name, values in data.draws.items()}
