"""Make every reference that the package ships."""

from collections.abc import Callable, Iterable
from pathlib import Path

import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from softcvi_experiments.references._builtin import SUMS
from softcvi_experiments.references._checksum import read_sums, sha256
from softcvi_experiments.references._importance import (
    resample_slcp,
    sample_slcp,
    simulate_slcp,
)
from softcvi_experiments.references._nuts import (
    sample_eight_schools,
    sample_garch,
    simulate_garch,
)
from softcvi_experiments.references._record import Reference
from softcvi_experiments.references._source import POSTERIORS, check_posterior

# Observations whose posterior is a spike say little about a method; those whose weights
# fall below this in a short run are passed over (sbibm leaves such seeds out as well).
_LEAST_WEIGHTS_ESS = 500
_PILOT_DRAWS = 500_000


def build(
    out: str | Path,
    posteriors: Iterable[str] = POSTERIORS,
    *,
    seed: int = 0,
    prior_draws: int = 40_000_000,
    report: Callable[[str], None] = lambda line: None,
) -> list[Path]:
    """Build references and list their checksums beside them.

    The same seed and library versions give the same draws.

    Args:
        out: Folder to write to; made if need be.
        posteriors: Which ones.
        seed: Seed of everything.
        prior_draws: Prior draws for every SLCP observation.
        report: Told a line on each posterior as it is finished.

    Example:
        >>> import tempfile
        >>> build(tempfile.mkdtemp(), [])
        []
        >>> build(tempfile.mkdtemp(), ["two_moons"])
        Traceback (most recent call last):
        ...
        ValueError: unknown reference posterior 'two_moons'; known: ...
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for posterior in [check_posterior(name) for name in posteriors]:
        reference = _make(posterior, seed, prior_draws)
        path = folder / f"{posterior}.npz"
        reference.save(path)
        _record_sum(folder, path)
        report(reference.describe())
        paths.append(path)
    return paths


def _make(posterior: str, seed: int, prior_draws: int) -> Reference:
    data_key, sample_key = jr.split(jr.key(seed))
    sample_key = jr.fold_in(sample_key, POSTERIORS.index(posterior))
    task, _, label = posterior.rpartition("_")
    if task == "slcp":
        number = int(label)
        x, theta = _slcp_observation(data_key, number)
        return sample_slcp(sample_key, number, x, theta, prior_draws=prior_draws)
    if posterior == "garch_paper":
        return sample_garch(sample_key, simulate_garch(data_key), "paper")
    if posterior == "garch_posteriordb":
        return sample_garch(sample_key, simulate_garch(data_key), "posteriordb")
    return sample_eight_schools(sample_key)


def _slcp_observation(
    key: PRNGKeyArray, number: int
) -> tuple[Float[np.ndarray, "4 2"], Float[np.ndarray, " 5"]]:
    found = 0
    for candidate in range(1000):
        pilot_key, simulation_key = jr.split(jr.fold_in(key, candidate))
        x, theta = simulate_slcp(simulation_key)
        pilot = resample_slcp(pilot_key, x, prior_draws=_PILOT_DRAWS, num_draws=1)
        found += pilot.size >= _LEAST_WEIGHTS_ESS
        if found == number:
            return x, theta
    raise RuntimeError("no further SLCP observation found in 1000 candidates")


def _record_sum(folder: Path, path: Path) -> None:
    sums = read_sums(folder / SUMS) if (folder / SUMS).is_file() else {}
    sums[path.name] = sha256(path)
    lines = [f"{digest}  {name}\n" for name, digest in sorted(sums.items())]
    (folder / SUMS).write_text("".join(lines))
