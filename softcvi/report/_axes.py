"""A pair of axes as SVG: a few marks, all of them scaled to one frame."""

import dataclasses
import html
from collections.abc import Sequence

import numpy as np

from softcvi.report._palette import Style
from softcvi.report._ticks import log_ticks, tick_text, ticks

Range = tuple[float, float]


@dataclasses.dataclass
class Axes:
    """A frame that turns numbers into SVG marks.

    Args:
        x: Range of the horizontal axis; of exponents if ``log_x``.
        y: Range of the vertical axis; of exponents if ``log_y``.
        x_label: Name of the horizontal axis.
        y_label: Name of the vertical axis.
        width: Width of the drawing.
        height: Height of the drawing.
        log_x: Horizontal ticks are powers of ten.
        log_y: Vertical ticks are powers of ten.
        y_ticks: Whether heights have numbers.
        margins: Left, right, top and bottom.

    Example:
        >>> axes = Axes((0, 1), (0, 1))
        >>> axes.line([0, 1], [0, 1], Style("a line", "#000000"))
        >>> "<path" in axes.render()
        True
    """

    x: Range
    y: Range
    x_label: str = ""
    y_label: str = ""
    width: int = 340
    height: int = 210
    log_x: bool = False
    log_y: bool = False
    y_ticks: bool = True
    margins: tuple[int, int, int, int] = (46, 16, 8, 34)

    def __post_init__(self) -> None:
        self._marks: list[str] = []
        if not self.y[1] > self.y[0]:
            self.y = (self.y[0] - 0.5, self.y[0] + 0.5)
        if not self.x[1] > self.x[0]:
            self.x = (self.x[0] - 0.5, self.x[0] + 0.5)

    def line(
        self, xs, ys, style: Style, width: float = 1.8, opacity: float = 1.0
    ) -> None:
        """A line through points; gaps where numbers are missing."""
        dash = f' stroke-dasharray="{style.dash}"' if style.dash else ""
        self._marks.append(
            f'<path d="{self._path(xs, ys)}" fill="none" {style.paint("stroke")} '
            f'stroke-width="{width}" stroke-opacity="{opacity:g}" '
            f'stroke-linejoin="round"{dash}/>'
        )

    def area(self, xs, ys, style: Style, opacity: float = 0.25) -> None:
        """A line, with the area below it filled."""
        base = self.y[0]
        closed_x = [xs[0], *xs, xs[-1]]
        closed_y = [base, *ys, base]
        self._marks.append(
            f'<path d="{self._path(closed_x, closed_y)}Z" {style.paint("fill")} '
            f'fill-opacity="{opacity}" stroke="none"/>'
        )
        self.line(xs, ys, style, 1.2)

    def sticks(self, xs, ys, style: Style, shift: float = 0.0) -> None:
        """A vertical bar from the base to each point."""
        base = f"{self._y(self.y[0]):.1f}"
        path = "".join(
            f"M{self._x(x) + shift:.1f} {base}V{self._y(y):.1f}"
            for x, y in zip(xs, ys, strict=True)
        )
        self._marks.append(
            f'<path d="{path}" {style.paint("stroke")} stroke-width="4"/>'
        )

    def dots(self, xs, ys, style: Style, size: float = 2.2, opacity=0.55) -> None:
        """Many points as one path: a dot is a line of no length with round ends."""
        xs, ys = np.asarray(xs, float), np.asarray(ys, float)
        inside = (xs >= self.x[0]) & (xs <= self.x[1])
        inside &= (ys >= self.y[0]) & (ys <= self.y[1])
        path = "".join(
            f"M{x:.1f} {y:.1f}h0"
            for x, y in zip(self._x(xs[inside]), self._y(ys[inside]), strict=True)
        )
        self._marks.append(
            f'<path d="{path}" {style.paint("stroke")} stroke-width="{size}" '
            f'stroke-linecap="round" stroke-opacity="{opacity}" fill="none"/>'
        )

    def rule(self, xs: Sequence[float], ys: Sequence[float]) -> None:
        """A quiet line to compare with."""
        self._marks.append(f'<path d="{self._path(xs, ys)}" class="rule"/>')

    def render(self) -> str:
        """The group of frame, ticks and marks."""
        left, _, top, _ = self.margins
        inner_width, inner_height = self._inner()
        clip = (
            f'<svg class="marks" x="{left}" y="{top}" width="{inner_width}" '
            f'height="{inner_height}" '
            f'viewBox="{left} {top} {inner_width} {inner_height}">'
        )
        frame = (
            f'<rect x="{left}" y="{top}" width="{inner_width}" '
            f'height="{inner_height}" class="frame"/>'
        )
        return f"{frame}{self._ticks()}{clip}{''.join(self._marks)}</svg>"

    def _ticks(self) -> str:
        left, _, top, _ = self.margins
        inner_width, inner_height = self._inner()
        bottom, right = top + inner_height, left + inner_width
        parts = []
        for value in (log_ticks if self.log_x else ticks)(*self.x, 5):
            x = f"{self._x(value):.1f}"
            parts.append(f'<path d="M{x} {top}V{bottom}" class="grid"/>')
            text = tick_text(10.0**value if self.log_x else value)
            parts.append(
                f'<text x="{x}" y="{bottom + 13}" text-anchor="middle">{text}</text>'
            )
        if self.y_ticks:
            for value in (log_ticks if self.log_y else ticks)(*self.y, 4):
                y = self._y(value)
                parts.append(f'<path d="M{left} {y:.1f}H{right}" class="grid"/>')
                text = tick_text(10.0**value if self.log_y else value)
                parts.append(
                    f'<text x="{left - 5}" y="{y + 3.5:.1f}" text-anchor="end">'
                    f"{text}</text>"
                )
        middle = left + inner_width / 2
        if self.x_label:
            parts.append(
                f'<text x="{middle:.0f}" y="{self.height - 5}" class="label" '
                f'text-anchor="middle">{html.escape(self.x_label)}</text>'
            )
        if self.y_label:
            y = top + inner_height / 2
            parts.append(
                f'<text transform="translate(11 {y:.0f}) rotate(-90)" class="label" '
                f'text-anchor="middle">{html.escape(self.y_label)}</text>'
            )
        return "".join(parts)

    def _inner(self) -> tuple[int, int]:
        left, right, top, bottom = self.margins
        return self.width - left - right, self.height - top - bottom

    def _x(self, value):
        share = (value - self.x[0]) / (self.x[1] - self.x[0])
        return self.margins[0] + share * self._inner()[0]

    def _y(self, value):
        share = (value - self.y[0]) / (self.y[1] - self.y[0])
        return self.margins[2] + (1 - share) * self._inner()[1]

    def _path(self, xs, ys) -> str:
        # A value far outside would overflow the renderer; the frame clips it anyway.
        spread = self.y[1] - self.y[0]
        pieces, pen = [], "M"
        for x, y in zip(np.asarray(xs, float), np.asarray(ys, float), strict=True):
            if not (np.isfinite(x) and np.isfinite(y)):
                pen = "M"
                continue
            y = min(max(y, self.y[0] - 3 * spread), self.y[1] + 3 * spread)
            pieces.append(f"{pen}{self._x(x):.1f} {self._y(y):.1f}")
            pen = "L"
        return "".join(pieces)
