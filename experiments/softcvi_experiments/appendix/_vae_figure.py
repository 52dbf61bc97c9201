"""Decoded manifolds and embeddings of the autoencoders."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from softcvi.report import own_settings
from softcvi_experiments._figures import new_figure
from softcvi_experiments.figures import METHOD_COLOURS, METHOD_LABELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NUM_DIGITS = 10
_MOST_POINTS = 3000
_HAS_MARGIN = 16


@own_settings()
def vae_figure(pictures: Mapping[str, Mapping[str, np.ndarray]]) -> "Figure":
    """The decoded grid of each method above the embedding of the test images.

    Args:
        pictures: By method, ``grid`` of decoded images, ``means`` of the encoded test
            images and their ``labels``.

    Example:
        >>> picture = {
        ...     "grid": np.zeros((3, 3, 64)), "means": np.zeros((5, 2)),
        ...     "labels": np.arange(5),
        ... }
        >>> len(vae_figure({"elbo": picture}).axes)
        2
    """
    from matplotlib import colormaps
    from matplotlib.lines import Line2D

    colours = colormaps["tab10"](np.arange(_NUM_DIGITS))
    figure, axes = new_figure(2, len(pictures), 2.9, 2.9)
    for column, (method, picture) in zip(axes.T, pictures.items(), strict=True):
        column[0].set_title(METHOD_LABELS[method], color=METHOD_COLOURS[method])
        column[0].imshow(_mosaic(picture["grid"]), cmap="gray_r")
        column[0].set_axis_off()
        means = picture["means"][:_MOST_POINTS].astype(float)
        column[1].scatter(
            means[:, 0],
            means[:, 1],
            s=3,
            c=colours[picture["labels"][:_MOST_POINTS]],
            linewidths=0,
            rasterized=True,
        )
        # A few images far out would squeeze all others into a corner.
        for limit, values in zip(
            (column[1].set_xlim, column[1].set_ylim), means.T, strict=True
        ):
            low, high = np.quantile(values, [0.005, 0.995])
            margin = 0.08 * max(high - low, 1e-3)
            limit(low - margin, high + margin)
        column[1].set_xlabel("$z_1$")
    axes[1, 0].set_ylabel("$z_2$")
    handles = [
        Line2D([], [], marker="o", linestyle="", color=colour, label=str(digit))
        for digit, colour in enumerate(colours)
    ]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=_NUM_DIGITS if len(pictures) > 2 else _NUM_DIGITS // 2,
        handletextpad=0.1,
        columnspacing=1.2,
    )
    return figure


def _mosaic(grid: np.ndarray) -> np.ndarray:
    """One picture of all images, the second latent growing upwards."""
    rows, columns, pixels = grid.shape
    side = round(pixels**0.5)
    tiles = grid[::-1].reshape(rows, columns, side, side)
    if side < _HAS_MARGIN:  # small images fill their tiles
        tiles = np.pad(tiles, ((0, 0), (0, 0), (1, 1), (1, 1)))
    _, _, height, width = tiles.shape
    return tiles.transpose(0, 2, 1, 3).reshape(rows * height, columns * width)
