"""The study of NumPyro's models, and the tables of the documentation."""

import dataclasses

from softcvi_experiments.children import Task
from softcvi_experiments.neighbours._autoencoder import train
from softcvi_experiments.neighbours._compare import compare
from softcvi_experiments.neighbours._models import cases
from softcvi_experiments.store import Record
from softcvi_experiments.study import AbstractStudy, answered
from softcvi_experiments.tables import markdown_table

_COLUMNS = (
    "model", "parameters", "guide", "k-hat", "verdict", "shift", "sd ratio",
    "processor s", "NUTS, processor s", "R-hat",
)  # fmt: skip
_LOSSES = ("SoftCVILoss", "Trace_ELBO")


def table(records: list[Record]) -> str:
    """A row for each model, and what the autoencoder has reached.

    Args:
        records: The last record of each.
    """
    rows = [row(record) for record in records if "model" in record]
    found = [markdown_table(_COLUMNS, rows)]
    trained = {r["loss"]: r for r in records if "loss" in r}
    if len(trained) == len(_LOSSES):
        ours, theirs = (trained[loss] for loss in _LOSSES)
        found.append(
            "The autoencoder (scikit-learn's digits, 8 latents, trained by NumPyro's "
            f"`SVI` in {ours['steps']} mini-batches) reaches a held-out ELBO of "
            f"{ours['held_out_elbo']:.2f} nats per image with `SoftCVILoss()` and of "
            f"{theirs['held_out_elbo']:.2f} with `Trace_ELBO()`."
        )
    return "\n\n".join(found)


def row(facts: Record) -> list[str]:
    """Cells of one line of the table.

    Example:
        >>> facts = {"model": "m", "parameters": 2, "guide": "normal", "khat": 0.1,
        ...     "verdict": "trusted", "seconds": 3.0, "nuts_seconds": 4.0,
        ...     "nuts_rhat": 1.0, "plain": (0.1, 1.1), "corrected": (0.01, 1.0)}
        >>> row(facts)[3:7]
        ['0.10', 'trusted', '0.10, 0.01', '1.10, 1.00']
    """
    (shift, ratio), (better_shift, better_ratio) = facts["plain"], facts["corrected"]
    cells = [
        facts["model"],
        facts["parameters"],
        facts["guide"],
        f"{facts['khat']:.2f}",
        facts["verdict"],
        f"{shift:.2f}, {better_shift:.2f}",
        f"{ratio:.2f}, {better_ratio:.2f}",
        f"{facts['seconds']:.0f}",
        f"{facts['nuts_seconds']:.0f}",
        f"{facts['nuts_rhat']:.2f}",
    ]
    return [str(cell) for cell in cells]


def measure(steps: int, model: str | None = None, loss: str | None = None) -> Record:
    """Fit a model, or train the autoencoder with a loss.

    Args:
        steps: Steps of the fit.
        model: Name of the model.
        loss: Name of the loss.
    """
    if loss is not None:
        return {"held_out_elbo": train(loss, steps=steps)}
    [case] = [case for case in cases() if case.name == model]
    return compare(case, steps=steps)


@dataclasses.dataclass(frozen=True)
class Study(AbstractStudy):
    """All models, and the autoencoder with both losses.

    Attributes:
        steps: Steps of each fit.
        vae_steps: Steps of the autoencoder.

    Example:
        >>> len(Study().tasks())
        6
    """

    name = "neighbours"
    worker = "softcvi_experiments.neighbours._table:measure"
    identity = ("model", "loss")
    timeout = 3600.0
    timed = True

    steps: int = 10_000
    vae_steps: int = 3000

    def tasks(self) -> list[Task]:
        models = [{"model": case.name, "steps": self.steps} for case in cases()]
        return [*models, *({"loss": x, "steps": self.vae_steps} for x in _LOSSES)]

    def kind(self, task: Task) -> tuple:
        return tuple(str(value) for value in self.case_of(task))

    def page(self, records: list[Record]) -> str:
        return f"# NumPyro's own models\n\n{table(answered(records))}\n"
