"""The paper's own references: posteriordb's and sbibm's draws."""

import bz2
import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from softcvi_experiments.references._public_files import PublicFiles
from softcvi_experiments.references._record import Reference
from softcvi_experiments.references._source import (
    AbstractReferenceSource,
    check_posterior,
)

_POSTERIORDB_FILES = {
    "eight_schools": ("eight_schools", "eight_schools-eight_schools_noncentered"),
    "garch": ("garch", "garch-garch11"),
}


class PosteriordbSbibm(AbstractReferenceSource):
    """The reference posteriors that the paper used.

    posteriordb has one GARCH posterior, under its own recursion (first standard
    deviation fixed) and with a prior flat on the triangle of ``alpha1`` and
    ``beta1``. The paper compared its slightly different model with it, so both GARCH
    names lead to those draws here; the provenance says so.

    Args:
        data_dir: A folder or the base URL of a mirror, either with the sub-folders
            ``posteriordb`` and ``sbibm_slcp``; downloaded from the projects'
            repositories if not given.

    Example:
        >>> PosteriordbSbibm("nowhere").load("garch_paper")
        Traceback (most recent call last):
        ...
        softcvi_experiments.references._errors.ReferenceFileError: reference file ...
    """

    name = "posteriordb-sbibm"

    def __init__(self, data_dir: str | Path | None = None) -> None:
        self._files = PublicFiles(data_dir)

    def load(self, posterior: str) -> Reference:
        """Read one posterior, downloading it if need be.

        Args:
            posterior: Its name.

        Example:
            >>> PosteriordbSbibm("nowhere").load("two_moons")
            Traceback (most recent call last):
            ...
            ValueError: unknown reference posterior 'two_moons'; known: ...
        """
        task, _, number = check_posterior(posterior).rpartition("_")
        if task == "slcp":
            return self._slcp(posterior, int(number))
        if task == "garch":
            return self._posteriordb(posterior, "garch")
        return self._posteriordb(posterior, posterior)

    def fetch(self) -> list[Path]:
        """Download or check every file.

        Example:
            >>> PosteriordbSbibm("nowhere").fetch()
            Traceback (most recent call last):
            ...
            softcvi_experiments.references._errors.ReferenceFileError: reference ...
        """
        return [self._files.path(name) for name in self._files.names]

    def _posteriordb(self, posterior: str, task: str) -> Reference:
        data_file, draws_file = _POSTERIORDB_FILES[task]
        data = _read_zipped_json(self._files.path(f"posteriordb/{data_file}.json.zip"))
        chains = _read_zipped_json(
            self._files.path(f"posteriordb/{draws_file}.json.zip")
        )
        observed = {key: data[key] for key in ("y", "sigma", "sigma1") if key in data}
        provenance = {
            "source": "posteriordb 0.5.0",
            "posterior": draws_file,
            "method": f"Stan, {len(chains)} chains",
        }
        if posterior == "garch_paper":
            provenance["caution"] = (
                "drawn under posteriordb's recursion and prior, not the paper's"
            )
        return Reference.from_chains(
            posterior, _stack_chains(chains), observed, provenance
        )

    def _slcp(self, posterior: str, number: int) -> Reference:
        folder = f"sbibm_slcp/num_observation_{number}"
        observed = {
            "x": _read_csv(self._files.path(f"{folder}/observation.csv")).reshape(4, 2),
            "theta": _read_csv(self._files.path(f"{folder}/true_parameters.csv"))[0],
        }
        path = self._files.path(f"{folder}/reference_posterior_samples.csv.bz2")
        draws = _read_csv(path)
        provenance = {
            "source": "sbibm 1.1.0",
            "posterior": f"slcp, observation {number}",
            "method": "rejection from a flow fitted to importance resampled draws",
        }
        # Independent draws: any split into chains serves R-hat.
        chains = {"theta": draws.reshape(10, -1, draws.shape[1])}
        return Reference.from_chains(posterior, chains, observed, provenance)


def _read_zipped_json(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read(archive.namelist()[0]))


def _stack_chains(chains: list[dict[str, list[float]]]) -> dict[str, np.ndarray]:
    """Gather ``theta[1]``, ``theta[2]``... into one array ``theta``."""
    columns: dict[str, list[np.ndarray]] = {}
    for label in chains[0]:
        name, _, index = label.partition("[")
        values = np.array([chain[label] for chain in chains])
        columns.setdefault(name, []).append(values[..., None] if index else values)
    return {
        name: parts[0] if parts[0].ndim == 2 else np.concatenate(parts, axis=-1)
        for name, parts in columns.items()
    }


def _read_csv(path: Path) -> np.ndarray:
    raw = path.read_bytes()
    text = (bz2.decompress(raw) if path.suffix == ".bz2" else raw).decode()
    rows = list(csv.reader(io.StringIO(text)))[1:]
    return np.array(rows, dtype=float)
