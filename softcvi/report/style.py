"""One style for all charts: colours, dashes, and settings of matplotlib.

The experiments and the report draw with it. Pages are light or dark, so every colour
has a partner: ``themed`` replaces both kinds of colours in an SVG by what follows the
theme of the page.
"""

import contextlib
import dataclasses
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True)
class Style:
    """How one method is drawn; the dash tells it apart without colours.

    Args:
        label: What people call it.
        colour: Its colour.
        dash: Its dash, as SVG writes it.
        dark: Its colour on a dark page; the same one by default.

    Example:
        >>> Style("mine", "#cc79a7").dash
        ''
    """

    label: str
    colour: str
    dash: str = ""
    dark: str = ""

    def paint(self, attribute: str) -> str:
        """The colour as SVG attributes, in the theme of the page.

        Args:
            attribute: ``"stroke"`` or ``"fill"``.
        """
        # Browsers without light-dark() keep the plain attribute.
        both = f"light-dark({self.colour},{self.dark or self.colour})"
        return f'{attribute}="{self.colour}" style="{attribute}:{both}"'

    @property
    def line(self) -> dict[str, Any]:
        """Colour and dash for matplotlib's lines."""
        pattern = [float(length) for length in self.dash.split()]
        # An SVG repeats an odd pattern; matplotlib wants pairs.
        pattern = pattern * 2 if len(pattern) % 2 else pattern
        dashes = (0, tuple(pattern)) if pattern else "solid"
        return {"color": self.colour, "linestyle": dashes}


METHOD_STYLES = {
    "softcvi": Style("SoftCVI", "#0072b2", dark="#8accff"),
    "elbo": Style("ELBO", "#d55e00", "6 3", dark="#ff9357"),
    "snis-fkl": Style("SNIS-fKL", "#e69f00", "2 3", dark="#ffcf5c"),
    "reference": Style("reference", "#009e73", dark="#16a878"),
    # Variants that the paper's experiments compare.
    "softcvi-0.75": Style("SoftCVI, alpha 0.75", "#0072b2", dark="#8accff"),
    "softcvi-1": Style("SoftCVI, alpha 1", "#56b4e9", "8 2 2 2"),
    "softcvi-0": Style("SoftCVI, alpha 0", "#cc79a7", "4 2", dark="#f0a8cf"),
    "snis-fkl-low-variance": Style("SNIS-fKL, low variance", "#f0e442", "1 2"),
    "elbo-stl": Style("ELBO, STL", "#882255", "10 3", dark="#d9679f"),
}
_OTHERS = (
    ("#cc79a7", "#f0a8cf"),
    ("#56b4e9", "#56b4e9"),
    ("#882255", "#d9679f"),
    ("#999933", "#cccc66"),
)
# None of these is near the colour of a method or of the reference.
_OWN = (
    ("#c2408f", "#ff8fd0"),
    ("#7d7d1a", "#d6d65c"),
    ("#6a3d9a", "#b79aff"),
    ("#8c510a", "#d9a066"),
    ("#b2182b", "#ff7a7a"),
    ("#444c55", "#d0d7de"),
)
_OWN_DASHES = ("6 3", "2 3", "8 2 2 2", "10 3", "4 2 1 2")

INK, SOFT, LINE, GRID, CARD = "#1b2127", "#56606a", "#d5dbe1", "#e8ecf0", "#ffffff"
GOOD, FAIR, POOR = "#e3f4ec", "#fdf1d8", "#fbe3dc"
# The page's variables for these, which its style sheet sets for both themes.
_VARIABLES = {
    INK: "--ink",
    SOFT: "--soft",
    LINE: "--line",
    GRID: "--grid",
    CARD: "--card",
    GOOD: "--good",
    FAIR: "--fair",
    POOR: "--poor",
}
RC_PARAMS: dict[str, Any] = {
    "font.size": 11.0,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK,
    "axes.labelsize": 11.0,
    "axes.titlesize": 11.0,
    "axes.titleweight": "bold",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "xtick.major.size": 0.0,
    "ytick.major.size": 0.0,
    "ytick.minor.size": 0.0,
    "xtick.minor.size": 0.0,
    "lines.linewidth": 1.8,
    "lines.scale_dashes": False,
    # Dots are lines of no length, which simplification would remove.
    "path.simplify": False,
    "svg.fonttype": "none",
}


# matplotlib's own file of settings has 40 kB.
_LARGEST_SETTINGS = 1_000_000


@contextlib.contextmanager
def own_settings(settings: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Draw by matplotlib's defaults, whatever ``matplotlibrc`` there is.

    One in the current folder may be a stranger's: its settings run LaTeX. Also a
    decorator of functions that draw.

    Args:
        settings: Settings beside the defaults.

    Example:
        >>> import matplotlib
        >>> with matplotlib.rc_context({"axes.facecolor": "red"}), own_settings():
        ...     print(matplotlib.rcParams["axes.facecolor"])
        white
    """
    _refuse_unreadable(Path("matplotlibrc"))
    from matplotlib import rc_context, rcParamsDefault

    # A backend is not used, and would be a module.
    defaults = {k: v for k, v in rcParamsDefault.items() if k != "backend"}
    with rc_context({**defaults, **(settings or {})}):
        yield


def _refuse_unreadable(path: Path) -> None:
    """Say what matplotlib would fail or wait at while it is imported."""
    if "matplotlib" in sys.modules or not path.exists() or path.is_dir():
        return
    why = "not a file, or too large"
    if path.is_file() and path.stat().st_size <= _LARGEST_SETTINGS:
        try:
            path.read_text(encoding="utf-8")
            return
        except (OSError, UnicodeDecodeError) as error:
            why = str(error)
    raise OSError(
        f"{path}: matplotlib cannot read these settings in the current folder ({why}). "
        "Remove them, or change to another folder."
    )


def style_of(method: str) -> Style:
    """The style of a method: fixed for those known, steady for any other.

    Args:
        method: Its name.

    Example:
        >>> style_of("elbo").colour
        '#d55e00'
        >>> style_of("pathfinder").label
        'pathfinder'
    """
    known = METHOD_STYLES.get(method)
    if known is not None:
        return known
    light, dark = _OTHERS[sum(method.encode()) % len(_OTHERS)]
    return Style(method, light, "8 2 2 2", dark)


def own_style(label: str, index: int) -> Style:
    """The style of one fit among several of its method.

    Args:
        label: What the page calls the fit.
        index: How many fits got a style of their own before it.

    Example:
        >>> own_style("a", 0) != own_style("a", 6)
        True
    """
    light, dark = _OWN[index % len(_OWN)]
    return Style(label, light, _OWN_DASHES[index % len(_OWN_DASHES)], dark)


_DARK = {
    **{style.colour: style.dark or style.colour for style in METHOD_STYLES.values()},
    **dict((*_OTHERS, *_OWN)),
}


def themed(svg: str) -> str:
    """Colours of this style in an SVG, made to follow the theme of the page.

    Args:
        svg: What matplotlib wrote.

    Example:
        >>> themed('<path style="stroke: #0072b2"/>')
        '<path style="stroke: #0072b2; stroke: light-dark(#0072b2, #8accff)"/>'
    """
    return re.sub(r"\b(fill|stroke): (#[0-9a-f]{6})\b", _themed_colour, svg)


def _themed_colour(match: re.Match[str]) -> str:
    attribute, colour = match[1], match[2]
    variable = _VARIABLES.get(colour)
    if variable is not None:
        return f"{attribute}: var({variable})"
    dark = _DARK.get(colour, colour)
    # Browsers without light-dark() keep the first of the two.
    return f"{match[0]}; {attribute}: light-dark({colour}, {dark})"
