"""One colour and one dash a method, on every page."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Style:
    """How one method is drawn; the dash tells it apart without colours.

    Args:
        label: What people call it.
        colour: Its colour, readable on light and on dark.
        dash: Its dash, as SVG writes it.

    Example:
        >>> Style("mine", "#cc79a7").dash
        ''
    """

    label: str
    colour: str
    dash: str = ""


METHOD_STYLES = {
    "softcvi": Style("SoftCVI", "#0072b2"),
    "elbo": Style("ELBO", "#d55e00", "6 3"),
    "snis-fkl": Style("SNIS-fKL", "#e69f00", "2 3"),
    "reference": Style("reference", "#009e73"),
    "corrected": Style("corrected by weights", "#808a94", "4 2"),
}
_OTHERS = ("#cc79a7", "#56b4e9", "#882255", "#999933")


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
    return Style(method, _OTHERS[sum(method.encode()) % len(_OTHERS)], "8 2 2 2")
