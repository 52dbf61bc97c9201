"""A chart: a drawing, the same in words, and the numbers behind it."""

import dataclasses
import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from softcvi.report.style import RC_PARAMS, Style, own_settings, themed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The first lines of an SVG, its metadata, and a style that would hold for the page.
_FRAME = re.compile(
    r"^.*?<svg[^>]*>|</svg>\s*$|<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->",
    re.DOTALL,
)
_NAMES = re.compile(r'(\bid="|url\(#|href="#)')
_FONT = re.compile(r"font-family:[^;\"]*;? ?|font: ([\d.]+px)[^;\"]*")
_POINTS_PER_INCH = 72


@dataclasses.dataclass(frozen=True)
class Chart:
    """What the page shows of one picture: drawing, text and numbers.

    Args:
        title: Its heading.
        words: What it shows, in a sentence or two: the text alternative.
        drawing: The inside of an SVG.
        width: Width of the drawing.
        height: Height of the drawing.
        legend: Styles that need a name.
        header: Names of the table's columns.
        rows: The numbers behind the drawing.
        wide: Whether it takes the whole width of the page.
        dots: Whether its marks are dots, which the legend then shows.

    Example:
        >>> Chart("Excess", "It falls.", "", 340, 210).rows
        ()
    """

    title: str
    words: str
    drawing: str
    width: int
    height: int
    legend: tuple[Style, ...] = ()
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    wide: bool = False
    dots: bool = False

    def marked(self, name: str) -> str:
        """The drawing with names of its own, so that a page can hold many.

        Args:
            name: What no other drawing of the page is called.
        """
        return _NAMES.sub(rf"\g<1>{name}-", self.drawing)


def draw(
    width: int,
    height: int,
    paint: Callable[[Any], None],
    *,
    grid: tuple[int, int] = (1, 1),
    margins: tuple[float, float, float, float] = (46, 12, 8, 34),
    gaps: tuple[float, float] = (40, 40),
) -> str:
    """The inside of an SVG that matplotlib draws, in the colours of the page.

    Args:
        width: Width in points.
        height: Height in points.
        paint: Draws on the axes: one, or a list of them if there are several.
        grid: Rows and columns of axes.
        margins: Left, right, top and bottom of all axes together, in points.
        gaps: Between columns and between rows, in points.

    Example:
        >>> "<path" in draw(100, 80, lambda axes: axes.plot([0, 1], [0, 1]))
        True
    """
    rows, columns = grid
    left, right, top, bottom = margins
    inner_width = (width - left - right - gaps[0] * (columns - 1)) / columns
    inner_height = (height - top - bottom - gaps[1] * (rows - 1)) / rows
    size = (width / _POINTS_PER_INCH, height / _POINTS_PER_INCH)
    with own_settings({**RC_PARAMS, "svg.hashsalt": "softcvi"}):
        from matplotlib.figure import Figure

        figure = Figure(figsize=size)
        axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
        figure.subplots_adjust(
            left=left / width,
            right=1 - right / width,
            top=1 - top / height,
            bottom=bottom / height,
            wspace=gaps[0] / inner_width,
            hspace=gaps[1] / inner_height,
        )
        paint(axes if len(axes) > 1 else axes[0])
        return _inside(figure)


def _inside(figure: "Figure") -> str:
    text = io.BytesIO()
    with warnings.catch_warnings():
        # Names in scripts that the layout font lacks; the browser has them.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(text, format="svg", transparent=True)
    svg = _FRAME.sub("", text.getvalue().decode("utf-8"))
    svg = _FONT.sub(lambda m: f"font-size: {m[1]}" if m[1] else "", svg)
    return themed(re.sub(r"\s*\n\s*", " ", svg))


def plain_number(value: float, _: Any = None) -> str:
    """A tick's number without a common factor or an exponent in superscript.

    Args:
        value: The number.

    Example:
        >>> plain_number(0.5), plain_number(2_000_000), plain_number(-3)
        ('0.5', '2e6', '−3')
    """
    text = f"{value:g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return text if "e" in text else text.replace("-", "\N{MINUS SIGN}")


def plain_log(axis: Any, digits: tuple[int, ...] = (1, 2, 5)) -> None:
    """Plain numbers on a logarithmic axis."""
    from matplotlib.ticker import LogLocator

    axis.set_major_locator(LogLocator(subs=digits, numticks=6))
    axis.set_major_formatter(plain_number)
    axis.set_minor_formatter("")


def shortened(text: str, most: int) -> str:
    """A label that fits its place; what tells folders apart is often at the end."""
    if len(text) <= most:
        return text
    half = (most - 1) // 2
    return f"{text[:half]}\N{HORIZONTAL ELLIPSIS}{text[-half:]}"


def number(value: float | None, digits: int = 3) -> str:
    """A number for a table; a dash if there is none."""
    if value is None or value != value:
        return "\N{EN DASH}"
    if abs(value) in (float("inf"),):
        return "\N{INFINITY}" if value > 0 else "\N{MINUS SIGN}\N{INFINITY}"
    text = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"
    return text.replace("-", "\N{MINUS SIGN}") if "e" not in text else text
