"""Picture files: one pair of parameters by each method, and a sweep."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from softcvi.diagnostics import THRESHOLDS
from softcvi.report._chart import shortened
from softcvi.report._view import FitView
from softcvi.report.style import own_settings, style_of

_DOTS = 3000


@own_settings()
def draw_pair(views: Sequence[FitView], path: Path) -> None:
    """Draw the pair that the fits of one posterior name.

    Args:
        views: The fits, with a pair.
        path: A PNG, SVG or PDF.

    Example:
        >>> import dataclasses, tempfile
        >>> view = dataclasses.replace(FitView.example(), pair=("mu", "tau"))
        >>> path = Path(tempfile.mkdtemp()) / "pair.png"
        >>> draw_pair([view], path)
        >>> path.read_bytes()[1:4]
        b'PNG'
    """
    from matplotlib.figure import Figure

    pair = views[0].pair or tuple(views[0].columns)[:2]
    panels = [(style_of(v.method), v.label, v.columns) for v in views]
    if views[0].reference is not None:
        style = style_of("reference")
        panels.insert(0, (style, "Reference", views[0].reference))
    figure = Figure(figsize=(3.0 * len(panels), 3.2), layout="constrained")
    figure.patch.set_facecolor("white")
    axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for axis, (style, label, columns) in zip(axes, panels, strict=True):
        x, y = (columns[name][:_DOTS] for name in pair)
        axis.scatter(x, y, s=3, color=style.colour, alpha=0.5, linewidths=0)
        axis.set_title(label, color=style.colour, fontweight="bold")
        axis.set_xlabel(pair[0])
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel(pair[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=160)


_LABEL = 40


@own_settings()
def draw_sweep(
    groups: Sequence[tuple[str, Sequence[dict[str, Any]]]], path: Path
) -> None:
    """Draw the fits of each setting, one dot per seed.

    Args:
        groups: Settings in words, each with its records.
        path: A PNG, SVG or PDF.

    Example:
        >>> import tempfile
        >>> record = {"status": "finished", "khat": 0.3, "seconds": 2.0}
        >>> path = Path(tempfile.mkdtemp()) / "sweep.png"
        >>> draw_sweep([("elbo", [record | {"verdict": "trusted"}])], path)
        >>> path.read_bytes()[1:4]
        b'PNG'
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 1.2 + 0.4 * len(groups)), layout="constrained")
    figure.patch.set_facecolor("white")
    khat, seconds, trusted = figure.subplots(1, 3, sharey=True)
    colour = style_of("reference").colour
    for row, (_, records) in enumerate(groups):
        done = [r for r in records if r["status"] != "failed"]
        for axis, name in ((khat, "khat"), (seconds, "seconds")):
            values = [r[name] for r in done if r[name] is not None]
            axis.plot(values, [row] * len(values), "o", color=colour, alpha=0.6)
        share = sum(r["verdict"] == "trusted" for r in done) / max(len(records), 1)
        trusted.barh(row, share, color=colour)
        if len(done) < len(records):
            words = f"{len(records) - len(done)} failed"
            trusted.text(0.02, row, words, va="center")
    khat.axvline(THRESHOLDS.usable_khat, color="grey", linestyle=":")
    khat.set_xlabel("k-hat")
    seconds.set_xlabel("seconds")
    seconds.set_xlim(left=0.0)
    trusted.set_xlabel("share trusted")
    trusted.set_xlim(0.0, 1.0)
    labels = [shortened(words, _LABEL) for words, _ in groups]
    khat.set_yticks(range(len(groups)), labels)
    khat.invert_yaxis()
    for axis in (khat, seconds, trusted):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=160)
