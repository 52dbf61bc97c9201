"""Pictures and tables of the documentation, as text that a block of code prints."""

import html
import io
import itertools
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

# A colour that nothing else has; it becomes the page's own text colour.
_INK = "#010203"
# Readable on white and on black.
TRUTH, GUIDE, OTHER, MUTED = "#2e9e4f", "#4a7fe0", "#e8702a", "#8a8f98"
_numbers = itertools.count()

_STYLE = {
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": _INK,
    "axes.titlesize": 10,
    "figure.facecolor": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.facecolor": "none",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "savefig.transparent": True,
    "svg.fonttype": "none",
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}


def panels(columns: int, rows: int = 1, width: float = 7.6, height: float = 2.6):
    """A row of axes in the style of the site; returned as figure and flat list."""
    with mpl.rc_context(_STYLE):
        figure, axes = plt.subplots(
            rows, columns, figsize=(width, height * rows), squeeze=False
        )
        figure.set_layout_engine("constrained")
    return figure, list(axes.flat)


def picture(figure, caption: str) -> str:
    """A figure as inline SVG; the caption is its text alternative too."""
    text = io.StringIO()
    number = next(_numbers)
    # Legends are made by the pages, outside of the style.
    for legend in [*figure.legends, *(axis.get_legend() for axis in figure.axes)]:
        if legend is not None:
            legend.set_frame_on(False)
            for label in legend.get_texts():
                label.set(color=_INK, fontsize=8)
    with mpl.rc_context({**_STYLE, "svg.hashsalt": f"picture {number}"}):
        figure.savefig(text, format="svg", dpi=200, metadata={"Date": None})
    plt.close(figure)
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :].replace(_INK, "currentColor")
    # One page holds several pictures: their identifiers must not meet.
    svg = re.sub(r'id="', f'id="p{number}-', svg)
    svg = re.sub(r"(url\(#|href=\"#)", rf"\1p{number}-", svg)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    label = html.escape(caption, quote=True)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    compact = re.sub(r"\n\s*", "\n", svg)
    return f'<figure class="picture">{compact}<figcaption>{label}</figcaption></figure>'


def histograms(axis, parts: dict[str, tuple[np.ndarray, str]], bins: int = 60) -> None:
    """Outlined histograms of several sets of draws on common bins."""
    everything = np.concatenate([np.ravel(draws) for draws, _ in parts.values()])
    edges = np.linspace(*np.quantile(everything, [0.002, 0.998]), bins)
    for label, (draws, colour) in parts.items():
        draws = np.ravel(draws)
        axis.hist(draws, edges, density=True, color=colour, alpha=0.2)
        axis.hist(
            draws, edges, density=True, color=colour, histtype="step", label=label
        )
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)


def cloud(axis, draws: np.ndarray, colour: str, label: str | None = None) -> None:
    """Draws of two parameters as small dots."""
    axis.scatter(
        draws[:, 0],
        draws[:, 1],
        s=4,
        color=colour,
        alpha=0.35,
        linewidths=0,
        label=label,
        rasterized=True,  # thousands of dots would swell the page
    )


def table(rows: list[dict]) -> str:
    """Dicts of equal keys as a Markdown table."""
    names = list(rows[0])
    lines = [names, ["---"] * len(names)]
    lines += [[str(row[name]) for name in names] for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
