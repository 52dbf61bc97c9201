"""One colour and one dash a method, on every page."""

import dataclasses


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


METHOD_STYLES = {
    "softcvi": Style("SoftCVI", "#0072b2", dark="#8accff"),
    "elbo": Style("ELBO", "#d55e00", "6 3", dark="#ff9357"),
    "snis-fkl": Style("SNIS-fKL", "#e69f00", "2 3", dark="#ffcf5c"),
    "reference": Style("reference", "#009e73", dark="#16a878"),
    "corrected": Style("corrected by weights", "#808a94", "4 2", dark="#a7b1bb"),
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
