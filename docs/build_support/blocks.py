"""Draws the picture of blocked labels: which noise the particles of a set share.

python docs/build_support/blocks.py writes ``docs/assets/blocks.svg``.
"""

from pathlib import Path

PARTICLES, NUMBERS, BLOCK = 4, 12, (4, 7)
CELL, LEFT, TOP, APART = 22, 30, 64, 380
# Shares of the label weight, to show what degenerate and even labels look like.
WHOLE, BLOCKED = (0.97, 0.01, 0.01, 0.01), (0.31, 0.18, 0.28, 0.23)
OWN = ("#1e88e5", "#e65100", "#2e7d32", "#8e24aa")
SHARED = "#cfd8dc"
LABEL = ("#546e7a", 60)


def picture() -> str:
    """The SVG text."""
    height = TOP + PARTICLES * (CELL + 6) + 56
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" '
        'role="img" aria-label="Left: four particles whose noise differs everywhere; '
        "one label takes all the weight. Right: four particles whose noise differs in "
        'one block of three numbers; the labels are even.">',
        "<style>text{font:13px sans-serif;fill:#263238}.t{font-weight:bold}"
        ".s{font-size:12px;fill:#455a64}</style>",
        f'<rect width="760" height="{height}" fill="#ffffff"/>',
        *_set(LEFT, "whole particles", WHOLE, (0, NUMBERS)),
        *_set(LEFT + APART, "a set with one block", BLOCKED, BLOCK),
    ]
    y = height - 18
    parts += [
        f'<rect x="{LEFT}" y="{y - 11}" width="13" height="13" fill="{SHARED}"/>',
        f'<text class="s" x="{LEFT + 20}" y="{y}">noise that all particles of the set '
        "share; each other colour is the own noise of one particle; bars are the "
        "labels</text>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _set(x: int, title: str, labels: tuple[float, ...], own: tuple[int, int]) -> list:
    colour, width = LABEL
    end = x + NUMBERS * CELL
    parts = [
        f'<text class="t" x="{x}" y="24">{title}</text>',
        f'<text class="s" x="{x}" y="{TOP - 12}">noise, one row per particle</text>',
        f'<text class="s" x="{end + 12}" y="{TOP - 12}">label</text>',
    ]
    for row in range(PARTICLES):
        y = TOP + row * (CELL + 6)
        for column in range(NUMBERS):
            fill = OWN[row] if own[0] <= column < own[1] else SHARED
            parts.append(
                f'<rect x="{x + column * CELL}" y="{y}" width="{CELL - 3}" '
                f'height="{CELL - 3}" rx="3" fill="{fill}"/>'
            )
        bar = max(1.5, labels[row] * width)
        parts.append(
            f'<rect x="{end + 12}" y="{y + 3}" width="{bar:.1f}" '
            f'height="{CELL - 9}" fill="{colour}"/>'
        )
    return parts


if __name__ == "__main__":
    Path(__file__).parents[1].joinpath("assets", "blocks.svg").write_text(picture())
