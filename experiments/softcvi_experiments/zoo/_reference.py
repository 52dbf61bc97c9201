"""The stored truth about a zoo model."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "data"
QUANTILES = (0.05, 0.16, 0.5, 0.84, 0.95)


@dataclass(frozen=True)
class Reference:
    """Moments, convergence figures and thinned draws of a zoo model's posterior.

    Moments are on the scale of :attr:`ZooModel.scales`; draws are in the model's
    own coordinates.

    Attributes:
        mean: Posterior mean by site.
        sd: Posterior standard deviation by site.
        quantiles: Quantiles 0.05, 0.16, 0.5, 0.84, 0.95 on the leading axis.
        draws: About 1,000 draws by site.
        rhat: Rank-normalised split R-hat by site.
        ess: Bulk effective sample size by site.
        provenance: How the reference was made, with versions and settings.

    Example:
        >>> from softcvi_experiments import zoo
        >>> reference = zoo.load_reference("banana")
        >>> reference.draws["x"].shape
        (1000,)
    """

    mean: Mapping[str, np.ndarray]
    sd: Mapping[str, np.ndarray]
    quantiles: Mapping[str, np.ndarray]
    draws: Mapping[str, np.ndarray]
    rhat: Mapping[str, np.ndarray]
    ess: Mapping[str, np.ndarray]
    provenance: Mapping[str, object]

    @property
    def worst(self) -> tuple[float, float]:
        """Largest R-hat and smallest bulk ESS over all parameters."""
        rhat = max(float(np.nanmax(v)) for v in self.rhat.values())
        return rhat, min(float(np.nanmin(v)) for v in self.ess.values())

    def save(self, path: Path) -> None:
        """Write one compressed file of arrays, single precision for the draws."""

        def precision(group: str, site: str) -> type:
            # Rounded, the rows of a Cholesky factor (whose zeros do not vary) lose
            # their unit length, and with it their place in the support.
            exact = group == "draws" and not np.all(self.sd[site] > 0)
            single = group in ("draws", "rhat", "ess") and not exact
            return np.float32 if single else np.float64

        arrays: dict[str, Any] = {
            f"{group}/{site}": np.asarray(value, precision(group, site))
            for group in ("mean", "sd", "quantiles", "draws", "rhat", "ess")
            for site, value in getattr(self, group).items()
        }
        arrays["provenance"] = json.dumps(dict(self.provenance))
        np.savez_compressed(path, **arrays)


def load_reference(name: str, folder: Path | str | None = None) -> Reference:
    """The stored reference of a zoo model.

    Args:
        name: Name of the model.
        folder: Where the references are; the packaged ones if None.

    Example:
        >>> from softcvi_experiments import zoo
        >>> bool(zoo.load_reference("banana").worst[0] < 1.01)
        True
    """
    path = Path(folder or FOLDER) / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(
            f"no reference for {name!r} in {path.parent}; make it with "
            f"`python -m softcvi_experiments.zoo --models {name}`."
        )
    groups: dict[str, dict] = {
        group: {} for group in ("mean", "sd", "quantiles", "draws", "rhat", "ess")
    }
    with np.load(path) as stored:
        provenance = json.loads(str(stored["provenance"]))
        for key in stored.files:
            group, _, site = key.partition("/")
            if site:
                groups[group][site] = stored[key]
    return Reference(**groups, provenance=provenance)
