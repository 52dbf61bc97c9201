"""Maximum likelihood fits of the families, made once for an output folder."""

import json
from pathlib import Path

import jax.random as jr

from softcvi_experiments._limits import family_limits
from softcvi_experiments.store import write_json
from softcvi_experiments.tasks import AbstractTask, RunData

FILE_NAME = "limits.json"


def stored_limits(
    folder: str | Path,
    task: AbstractTask,
    data: RunData,
    reference: str,
    *,
    steps: int | None = None,
) -> dict[str, float]:
    """Their scores by data set, from the folder where they are known already.

    Args:
        folder: The output folder.
        task: The task.
        data: Its data and reference draws.
        reference: Name of the reference source.
        steps: Steps of each maximum-likelihood fit; by default enough to settle.

    Example:
        >>> import tempfile
        >>> from softcvi_experiments import references, tasks
        >>> task, source = tasks.LinearRegression(), references.BuiltinReferences()
        >>> data = task.data(jr.key(0), [0], source)
        >>> limits = stored_limits(tempfile.mkdtemp(), task, data, "builtin", steps=20)
        >>> list(limits)
        ['linear_regression, run 0']
    """
    path = Path(folder) / FILE_NAME
    known = json.loads(path.read_text()) if path.is_file() else {}
    labels = {name: f"{reference}: {name}" for name in data.names}
    if any(label not in known for label in labels.values()):
        fresh = family_limits(jr.key(0), task, data, steps=steps)
        known |= {labels[name]: round(value, 5) for name, value in fresh.items()}
        write_json(path, known)
    return {name: known[label] for name, label in labels.items()}
