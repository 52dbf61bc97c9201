"""Draws the picture of the house: packages from the bottom up, and the way of the data.

python docs/build_support/house.py writes ``docs/assets/house.svg``.
"""

from pathlib import Path

LAYERS = (
    ("targets", "an unnormalised log density on named arrays", "target"),
    ("guides", "distributions that can be drawn and scored", "guide"),
    ("objectives", "K particles, soft labels, a divergence", "loss"),
    ("posterior", "draws, densities, importance weights, files", "posterior"),
    ("diagnostics", "evidence, and the verdict made from it", "verdict"),
    ("starts", "where the posterior is, and which guide suits it", "start report"),
    ("fitting", "fit, fit_many: the compiled loop and its host", "fit result"),
    ("ladder", "fit_until: rungs up to a trusted answer", "ladder result"),
    ("sweeps", "grids of fits on many workers, calibration", "records"),
    ("adapters", "NumPyro, PyMC, Stan, black boxes, ArviZ", "target, DataTree"),
    ("report", "pages, charts and tables", "HTML"),
    ("cli", "one small file per command", "files"),
)
WIDTH, ROW, GAP, LEFT = 760, 38, 8, 20


def picture() -> str:
    """The SVG text."""
    height = len(LAYERS) * (ROW + GAP) + 96
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'role="img" aria-label="The packages of softcvi, each of which imports only '
        'those above it in this list">',
        "<style>text{font:14px sans-serif;fill:#1a237e}.n{font-weight:bold}"
        ".s{font-size:12px;fill:#455a64}.b{fill:#e8eaf6;stroke:#3949ab}"
        ".e{fill:#fff3e0;stroke:#e65100}.a{stroke:#e65100;fill:none;stroke-width:2}"
        "</style>",
        '<defs><marker id="tip" orient="auto" markerWidth="8" markerHeight="8" '
        'refX="6" refY="3"><path d="M0,0 L6,3 L0,6 z" fill="#e65100"/></marker></defs>',
    ]
    for i, (name, what, gives) in enumerate(LAYERS):
        y = 12 + i * (ROW + GAP)
        parts += [
            f'<rect class="b" x="{LEFT}" y="{y}" width="520" height="{ROW}" rx="5"/>',
            f'<text class="n" x="{LEFT + 12}" y="{y + 24}">{name}</text>',
            f'<text class="s" x="{LEFT + 120}" y="{y + 24}">{what}</text>',
            f'<text class="s" x="{LEFT + 560}" y="{y + 24}">{gives}</text>',
        ]
    end = 12 + len(LAYERS) * (ROW + GAP)
    x = LEFT + 540
    parts += [
        f'<path class="a" marker-end="url(#tip)" d="M{x},20 L{x},{end - 20}"/>',
        f'<rect class="e" x="{LEFT}" y="{end + 10}" width="520" height="{ROW}" '
        'rx="5"/>',
        f'<text class="n" x="{LEFT + 12}" y="{end + 34}">softcvi-experiments</text>',
        f'<text class="s" x="{LEFT + 180}" y="{end + 34}">a second distribution, on '
        "the public names alone</text>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(__file__).parents[1].joinpath("assets", "house.svg").write_text(picture())
