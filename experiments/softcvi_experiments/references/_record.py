"""What a reference posterior is: draws, the data they belong to, their quality."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from softcvi_experiments.references._convergence import effective_size, split_rhat


@dataclass(frozen=True)
class Reference:
    """Draws from a posterior taken as the truth, with their pedigree.

    Args:
        name: The posterior, for example ``"eight_schools"`` or ``"slcp_03"``.
        draws: Arrays with a leading axis of draws, in the model's own coordinates.
        observed: The data the posterior is conditioned on.
        provenance: How the draws came about, in JSON-friendly values.
        rhat: Split R-hat of every parameter (1 for exact draws).
        ess: Effective sample size of every parameter.

    Example:
        >>> from softcvi_experiments.references import BuiltinReferences
        >>> reference = BuiltinReferences().load("eight_schools")
        >>> reference.draws["theta"].shape
        (10000, 8)
        >>> bool(max(reference.rhat["theta"]) < 1.01)
        True
    """

    name: str
    draws: dict[str, np.ndarray]
    observed: dict[str, np.ndarray]
    provenance: dict[str, Any] = field(default_factory=dict)
    rhat: dict[str, np.ndarray] = field(default_factory=dict)
    ess: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def num_draws(self) -> int:
        """Number of draws.

        Example:
            >>> Reference("toy", {"x": np.zeros((3, 2))}, {}).num_draws
            3
        """
        return len(next(iter(self.draws.values())))

    def describe(self) -> str:
        """One line on size and quality.

        Example:
            >>> ones = {"x": np.ones(1)}
            >>> Reference("toy", {"x": np.zeros(3)}, {}, rhat=ones, ess=ones).describe()
            'toy: 3 draws, largest R-hat 1.0000, smallest ESS 1'
        """
        rhat = max(float(np.max(value)) for value in self.rhat.values())
        ess = min(float(np.min(value)) for value in self.ess.values())
        return (
            f"{self.name}: {self.num_draws} draws, "
            f"largest R-hat {rhat:.4f}, smallest ESS {ess:.0f}"
        )

    @classmethod
    def from_chains(
        cls,
        name: str,
        chains: Mapping[str, np.ndarray],
        observed: Mapping[str, Any],
        provenance: Mapping[str, Any],
    ) -> "Reference":
        """Pool chains of draws, measuring R-hat and ESS before they are mixed.

        Args:
            name: The posterior's name.
            chains: Arrays of shape ``(chains, draws, ...)``.
            observed: The data.
            provenance: How the draws came about.

        Example:
            >>> chains = {"x": np.random.default_rng(0).normal(size=(4, 500))}
            >>> reference = Reference.from_chains("toy", chains, {}, {})
            >>> reference.draws["x"].shape, bool(reference.rhat["x"] < 1.02)
            ((2000,), True)
        """
        arrays = {key: np.asarray(value, float) for key, value in chains.items()}
        return cls(
            name=name,
            draws={k: v.reshape(-1, *v.shape[2:]) for k, v in arrays.items()},
            observed={k: np.asarray(v, float) for k, v in observed.items()},
            provenance=dict(provenance),
            rhat={k: split_rhat(v) for k, v in arrays.items()},
            ess={k: effective_size(v) for k, v in arrays.items()},
        )

    def save(self, path: Path) -> None:
        """Write one compressed ``.npz``; draws go to float32.

        Seven digits are far below the Monte Carlo error of 10,000 draws, at half
        the size.

        Args:
            path: The file to write.

        Example:
            >>> import tempfile
            >>> path = Path(tempfile.mkdtemp()) / "toy.npz"
            >>> Reference("toy", {"x": np.zeros(3)}, {}).save(path)
            >>> Reference.read(path).draws["x"].dtype
            dtype('float32')
        """
        groups: dict[str, dict[str, Any]] = {
            "draws": {k: np.float32(v) for k, v in self.draws.items()},
            "observed": self.observed,
            "rhat": self.rhat,
            "ess": self.ess,
        }
        flat = {f"{g}/{k}": v for g, group in groups.items() for k, v in group.items()}
        label = json.dumps({"name": self.name, "provenance": self.provenance})
        np.savez_compressed(path, label=np.array(label), **flat)

    @classmethod
    def read(cls, path: Path) -> "Reference":
        """Read what :meth:`save` wrote.

        Args:
            path: The ``.npz`` file.

        Example:
            >>> import tempfile
            >>> path = Path(tempfile.mkdtemp()) / "toy.npz"
            >>> Reference("toy", {"x": np.zeros(3)}, {"y": np.ones(2)}).save(path)
            >>> Reference.read(path).observed["y"]
            array([1., 1.])
        """
        groups: dict[str, dict[str, np.ndarray]] = {
            "draws": {},
            "observed": {},
            "rhat": {},
            "ess": {},
        }
        with np.load(path, allow_pickle=False) as stored:
            label = json.loads(str(stored["label"]))
            for key in stored.files:
                group, _, name = key.partition("/")
                if group in groups:
                    groups[group][name] = stored[key]
        return cls(name=label["name"], provenance=label["provenance"], **groups)
