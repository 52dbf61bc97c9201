"""The table of the documentation."""

from pathlib import Path

from softcvi.sweeps import RecordStore
from softcvi_experiments.neighbours._autoencoder import train
from softcvi_experiments.neighbours._compare import compare
from softcvi_experiments.neighbours._models import cases
from softcvi_experiments.tables import markdown_table

_HEAD = """# NumPyro's examples, beside NUTS

Models of NumPyro's own examples, fitted with every default of `softcvi.fit` and by NUTS
(4 chains of 2,500 draws). *Shift* is the largest error of a posterior mean in posterior
standard deviations, *sd ratio* the ratio of standard deviations furthest from one; the
first number is for the guide's own draws (`posterior.sample`), the second for draws
corrected by importance weights, which is what `result.sample` gives where k-hat allows
and what the verdict is about. Seconds include compilation; *R-hat* is the largest of
NUTS. Made by `python -m softcvi_experiments.neighbours`.

"""
_COLUMNS = (
    "model", "parameters", "guide", "k-hat", "verdict", "shift", "sd ratio", "seconds",
    "NUTS", "R-hat",
)  # fmt: skip


def write_table(path: Path, *, steps: int = 10_000, vae_steps: int = 3000) -> None:
    """Run all cases and write the page, after each case anew.

    Args:
        path: The Markdown file.
        steps: Steps of each fit.
        vae_steps: Steps of the autoencoder.
    """
    store = RecordStore(path.parent)
    rows = []
    for case in cases():
        facts = compare(case, steps=steps)
        store.add([facts])
        rows.append(row(facts))
        text = _HEAD + markdown_table(_COLUMNS, rows) + "\n"
        path.write_text(text)
    ours, theirs = (
        train(name, steps=vae_steps) for name in ("SoftCVILoss", "Trace_ELBO")
    )
    text += (
        "\nThe autoencoder (scikit-learn's digits, 8 latents, trained by NumPyro's "
        f"`SVI` in {vae_steps} mini-batches) reaches a held-out ELBO of {ours:.2f} "
        "nats per image with `SoftCVILoss()` and of "
        f"{theirs:.2f} with `Trace_ELBO()`.\n"
    )
    path.write_text(text)


def row(facts: dict) -> list[str]:
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
