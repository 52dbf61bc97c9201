"""One pair of parameters as a picture file: reference, and each method beside it."""

from collections.abc import Sequence
from pathlib import Path

from softcvi.report._view import FitView
from softcvi.report.style import style_of

_DOTS = 3000


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
