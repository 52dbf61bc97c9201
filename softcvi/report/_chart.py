"""A chart: a drawing, the same in words, and the numbers behind it."""

import dataclasses
from collections.abc import Sequence

from softcvi.report._axes import Axes
from softcvi.report._palette import Style


@dataclasses.dataclass(frozen=True)
class Chart:
    """What the page shows of one picture, to eyes, ears and fingers.

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


def side_by_side(
    panels: Sequence[tuple[str, Axes]], columns: int, heading: int = 16
) -> tuple[str, int, int]:
    """Several axes in a grid, each under its own heading.

    Args:
        panels: Heading and axes of each.
        columns: Panels in a row.
        heading: Height of a heading.

    Returns:
        The drawing, its width and its height.

    Example:
        >>> axes = Axes((0, 1), (0, 1), width=100, height=80)
        >>> side_by_side([("a", axes), ("b", axes)], columns=2)[1:]
        (200, 96)
    """
    cell_width, cell_height = panels[0][1].width, panels[0][1].height + heading
    parts = []
    for i, (title, axes) in enumerate(panels):
        row, column = divmod(i, columns)
        left, _, _, _ = axes.margins
        middle = left + (axes.width - left - axes.margins[1]) / 2
        parts.append(
            f'<g transform="translate({column * cell_width} {row * cell_height})">'
            f'<text x="{middle:.0f}" y="{heading - 4}" class="panel" '
            f'text-anchor="middle">{title}</text>'
            f'<g transform="translate(0 {heading})">{axes.render()}</g></g>'
        )
    used = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    return "".join(parts), used * cell_width, rows * cell_height


def shortened(text: str, most: int) -> str:
    """A label that fits its place; what tells folders apart is often at the end.

    Args:
        text: The label.
        most: Letters at most.

    Example:
        >>> shortened("eight-schools-with-a-flow-seed-3", 20)
        'eight-sch…ow-seed-3'
    """
    if len(text) <= most:
        return text
    half = (most - 1) // 2
    return f"{text[:half]}\N{HORIZONTAL ELLIPSIS}{text[-half:]}"


def number(value: float | None, digits: int = 3) -> str:
    """A number for a table; a dash if there is none.

    Args:
        value: The number.
        digits: Significant digits.

    Example:
        >>> number(1234.5678), number(None), number(0.000123)
        ('1235', '–', '0.000123')
    """
    if value is None or value != value:
        return "\N{EN DASH}"
    if abs(value) in (float("inf"),):
        return "\N{INFINITY}" if value > 0 else "\N{MINUS SIGN}\N{INFINITY}"
    text = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"
    return text.replace("-", "\N{MINUS SIGN}") if "e" not in text else text
