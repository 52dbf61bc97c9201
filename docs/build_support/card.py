"""Draw the picture that other sites show beside a link to this one.

python docs/build_support/card.py   # writes docs/assets/social-card.png
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt

ASSETS = Path(__file__).parents[1] / "assets"


def main() -> None:
    """Name, purpose and the picture of the home page, 1200 by 630 pixels."""
    mpl.rcdefaults()  # whatever matplotlibrc there is
    figure = plt.figure(figsize=(12, 6.3), dpi=100, facecolor="#27306b")
    figure.text(0.05, 0.83, "softcvi", color="white", size=52, weight="bold")
    words = "Bayesian posteriors, and whether they can be trusted"
    figure.text(0.05, 0.72, words, color="#d6dbff", size=24)
    axis = figure.add_axes((0.05, 0.06, 0.9, 0.58))
    axis.imshow(plt.imread(ASSETS / "slcp.png"))
    axis.set_axis_off()
    figure.savefig(ASSETS / "social-card.png", metadata={"Software": None})


if __name__ == "__main__":
    main()
