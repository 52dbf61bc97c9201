"""The neural additive model's table beside the published one, and its figure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from softcvi.report import own_settings
from softcvi_experiments._figures import new_figure
from softcvi_experiments.appendix._additive_metrics import centred_truth
from softcvi_experiments.figures import METHOD_COLOURS, METHOD_LABELS
from softcvi_experiments.tables import markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = dict[str, Any]

# Mean and standard error over ten seeds, from the paper's table. The authors' published
# notebook shows that the "+-" there is a standard error.
PUBLISHED = {
    ("elbo", 50): ((-2.392, 0.005), (0.648, 0.084), (0.262, 0.042)),
    ("elbo", 100): ((-2.392, 0.005), (0.641, 0.065), (0.264, 0.031)),
    ("snis-fkl", 50): ((-2.422, 0.007), (0.695, 0.011), (0.186, 0.008)),
    ("snis-fkl", 100): ((-2.421, 0.005), (0.938, 0.010), (0.256, 0.007)),
    ("softcvi-0.75", 50): ((-2.424, 0.007), (0.743, 0.018), (0.202, 0.009)),
    ("softcvi-0.75", 100): ((-2.423, 0.005), (0.983, 0.017), (0.271, 0.010)),
    ("softcvi-1", 50): ((-2.422, 0.007), (0.701, 0.012), (0.190, 0.009)),
    ("softcvi-1", 100): ((-2.423, 0.005), (0.943, 0.012), (0.260, 0.009)),
}
_METRICS = ("log_mean_likelihood", "prediction_iqr", "iqr_coverage")


def chosen_rate(records: Sequence[Record]) -> float:
    """The rate that validation chooses for one method and width.

    As in the paper, it is the rate of the best single validation score of all seeds.

    Args:
        records: All records of the method and width.

    Example:
        >>> records = [
        ...     {"rate": 1e-3, "validation_score": -2.0},
        ...     {"rate": 1e-4, "validation_score": -1.9},
        ... ]
        >>> chosen_rate(records)
        0.0001
    """
    return max(records, key=lambda record: record["validation_score"])["rate"]


def additive_table(records: Sequence[Record]) -> str:
    """Published and ours at the chosen rates, as mean and standard error.

    Args:
        records: All records.

    Example:
        >>> additive_table([]).splitlines()[0].count("published")
        3
    """
    header = ["method", "width", "rate", "seeds"]
    for name in ("log mean likelihood", "IQR", "IQR coverage"):
        header += [f"{name}, published", "ours"]
    header.append("log predictive density, ours")
    lines = []
    for (method, width), group in _groups(records).items():
        rate = chosen_rate(group)
        best = [record for record in group if record["rate"] == rate]
        line = [METHOD_LABELS[method], str(width), f"{rate:g}", str(len(best))]
        published = PUBLISHED.get((method, width), (None,) * 3)
        for name, theirs in zip(_METRICS, published, strict=True):
            line += [
                "-" if theirs is None else f"{theirs[0]:.3f} ± {theirs[1]:.3f}",
                _mean_and_error(best, name),
            ]
        lines.append([*line, _mean_and_error(best, "log_predictive_density")])
    note = (
        "\n\nMean ± standard error over seeds (the sd is the standard error times the "
        "root of their number). Log mean likelihood is the published measure: the log "
        "of the average likelihood of random pairs of a draw and a test point; the "
        "true function scores -2.364. Log predictive density is the usual measure; the "
        "true function scores -2.518."
    )
    return markdown_table(header, lines) + note


def rates_table(records: Sequence[Record]) -> str:
    """The same metrics at every rate: what the choice of the rate decides.

    Args:
        records: All records.

    Example:
        >>> rates_table([]).splitlines()[0][:20]
        '| method | width | r'
    """
    header = ["method", "width", "rate", "best validation", "mean validation"]
    header += ["median best step", "published within two errors"]
    names = [*_METRICS, "log_predictive_density"]
    lines = []
    for (method, width), group in _groups(records).items():
        for rate in sorted({record["rate"] for record in group}):
            here = [record for record in group if record["rate"] == rate]
            lines.append(
                [
                    METHOD_LABELS[method],
                    str(width),
                    f"{rate:g}",
                    f"{max(record['validation_score'] for record in here):.3f}",
                    _mean_and_error(here, "validation_score"),
                    f"{np.median([record['best_step'] for record in here]):.0f}",
                    _num_published(here, PUBLISHED.get((method, width))),
                    *(_mean_and_error(here, name) for name in names),
                ]
            )
    return markdown_table([*header, *(name.replace("_", " ") for name in names)], lines)


@own_settings()
def additive_figure(records: Sequence[Record]) -> "Figure":
    """Means and 95 % intervals of the first three components, a row for each method.

    Args:
        records: All records; those of seed 0 at the smallest width are shown.

    Example:
        >>> lines = {name: [[0.0, 0.0]] * 3 for name in ("mean", "low", "high")}
        >>> record = {
        ...     "method": "elbo", "width": 50, "run": 0, "rate": 1e-3,
        ...     "validation_score": -2.0, "components": {"grid": [-4.0, 4.0], **lines},
        ... }
        >>> len(additive_figure([record]).axes)
        3
    """
    narrowest = min(record["width"] for record in records)
    groups = {
        method: group
        for (method, width), group in _groups(records).items()
        if width == narrowest
    }
    figure, axes = new_figure(len(groups), 3, 2.6, 1.7)
    for row, (method, group) in zip(axes, groups.items(), strict=True):
        rate = chosen_rate(group)
        shown = next(r for r in group if r["rate"] == rate and "components" in r)
        curves = {name: np.array(v) for name, v in shown["components"].items()}
        truth = np.asarray(centred_truth(jnp.asarray(curves["grid"])))
        row[0].set_ylabel(METHOD_LABELS[method])
        for i, axis in enumerate(row):
            colour = METHOD_COLOURS[method]
            axis.fill_between(
                curves["grid"], curves["low"][i], curves["high"][i],
                color=colour, alpha=0.35, linewidth=0,
            )  # fmt: skip
            axis.plot(curves["grid"], curves["mean"][i], color=colour)
            axis.plot(curves["grid"], truth[i], color="black", linestyle=":")
            axis.set_ylim(-8.5, 8.5)
    for i, axis in enumerate(axes[0]):
        axis.set_title(f"$f_{i + 1}(x_{i + 1})$")
    for i, axis in enumerate(axes[-1]):
        axis.set_xlabel(f"$x_{i + 1}$")
    _legend(figure)
    return figure


def _legend(figure: "Figure") -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D([], [], color="black", linestyle=":", label="truth"),
        Line2D([], [], color="grey", label="posterior mean"),
        Patch(color="grey", alpha=0.35, label="95 % interval"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)


def _groups(records: Sequence[Record]) -> dict[tuple[str, int], list[Record]]:
    groups: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        groups.setdefault((record["method"], record["width"]), []).append(record)
    return groups


def _num_published(
    records: Sequence[Record], published: Sequence[tuple[float, float]] | None
) -> str:
    """How many published means are within two published standard errors of ours."""
    if published is None:
        return "-"
    near = [
        abs(np.mean([record[name] for record in records]) - mean) <= 2 * error
        for name, (mean, error) in zip(_METRICS, published, strict=True)
    ]
    return f"{sum(near)} of {len(near)}"


def _mean_and_error(records: Sequence[Record], name: str) -> str:
    values = np.array([record[name] for record in records], dtype=float)
    if len(values) < 2:
        return f"{values.mean():.3f}"
    return f"{values.mean():.3f} ± {values.std(ddof=1) / len(values) ** 0.5:.3f}"
