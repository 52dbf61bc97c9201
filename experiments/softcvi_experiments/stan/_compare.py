"""Fits of Stan programs beside long NUTS runs on the same programs."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import jax
import numpy as np

import softcvi
from softcvi.sweeps import RecordStore
from softcvi_experiments.stan._programs import target as target_of
from softcvi_experiments.stan._reference import Reference, nuts
from softcvi_experiments.store import Record

METHODS: Mapping[str, Callable] = {
    "fit": softcvi.fit,
    "fit_until": softcvi.fit_until,
}


@dataclass(frozen=True)
class Comparison:
    """How a fit compares with NUTS, over parameters and transformed parameters.

    Attributes:
        program: Name of the program.
        method: ``fit`` or ``fit_until``.
        seed: Seed of the fit.
        dimension: Number of unconstrained parameters.
        mean_off: Largest difference of a mean, in NUTS's standard deviations.
        sd_low: Smallest ratio of standard deviations.
        sd_high: Largest ratio.
        trusted: Whether the fit says that it can be trusted.
        reasons: Why or why not, in words.
        seconds: Of the fit, with compilation by JAX but not by C++.
        rejections: Points at which the program gave no density.
        worst: The variable whose mean is furthest off.
        sound: Whether the chains of NUTS agree with each other.

    Example:
        >>> figures = {"mean_off": 0.05, "sd_low": 0.98, "sd_high": 1.03}
        >>> facts = {"trusted": True, "reasons": (), "rejections": 0, "seconds": 5.0}
        >>> names = {"program": "a", "method": "fit", "seed": 0, "worst": "mu"}
        >>> row = Comparison(**names, dimension=2, sound=True, **figures, **facts)
        >>> row.is_right
        True
    """

    program: str
    method: str
    seed: int
    dimension: int
    mean_off: float
    sd_low: float
    sd_high: float
    trusted: bool
    reasons: tuple[str, ...]
    seconds: float
    rejections: int
    worst: str
    sound: bool

    @property
    def is_right(self) -> bool:
        """Means within 0.1 standard deviations, standard deviations within 10 %."""
        return self.mean_off <= 0.1 and self.sd_low >= 0.9 and self.sd_high <= 1.1


def compare(
    program: str,
    method: str = "fit_until",
    seed: int = 0,
    *,
    references: RecordStore | None = None,
) -> Comparison:
    """Fit one program and compare with NUTS.

    Args:
        program: Name of the program.
        method: ``fit`` or ``fit_until``.
        seed: Seed of both.
        references: Where references are kept, by program; made and added if missing.

    Example:
        >>> from softcvi_experiments import stan
        >>> stan.compare("garch11").is_right  # doctest: +SKIP
        True
    """
    target = target_of(program)
    began = time.perf_counter()
    result = METHODS[method](jax.random.key(seed), target, progress=False)
    draws = result.sample(jax.random.key(seed + 1), 8000)
    seconds, rejections = time.perf_counter() - began, target.rejections
    # Generated quantities follow from the others; rare values of discrete ones would
    # only show the Monte Carlo error of their standard deviations.
    generated = {_base(name) for name in target.program.names[2]}
    draws = {n: np.asarray(v, np.float64) for n, v in draws.items()}
    compared = {n: v for n, v in draws.items() if _base(n) not in generated}
    found = [] if references is None else references.find({"program": program})
    if found:
        reference = Reference.from_record(found[-1])
    else:
        reference = nuts(target, draws, seed)
        if references is not None:
            references.add([{"program": program, **reference.to_record()}])
    return Comparison(
        program=program,
        method=method,
        seed=seed,
        dimension=target.structure.size,
        **difference(compared, reference),
        trusted=bool(result.verdict.trusted),
        reasons=tuple(result.verdict.reasons),
        seconds=round(seconds, 1),
        rejections=rejections,
        sound=reference.is_sound,
    )


def difference(draws: Mapping[str, np.ndarray], reference: Reference) -> dict:
    """How far draws are from the moments of a reference.

    Args:
        draws: Draws by variable.
        reference: Moments by NUTS.

    Example:
        >>> moments = {"mean": {"x": np.zeros(())}, "sd": {"x": np.ones(())}}
        >>> checks = {"rhat": 1.0, "ess": 900.0, "divergences": 0, "seconds": 1.0}
        >>> draws = {"x": np.array([0.0, 2.0])}
        >>> found = difference(draws, Reference(**moments, **checks))
        >>> found["mean_off"], found["sd_low"], found["worst"]
        (1.0, 1.0, 'x')
    """
    off, low, high, worst = 0.0, np.inf, 0.0, ""
    for name, values in draws.items():
        mean, sd = reference.mean[name], reference.sd[name]
        varies = sd > 1e-9 * (1 + np.abs(mean))  # not the zeros of a Cholesky factor
        if not np.any(varies):
            continue
        shift = np.abs(values.mean(0) - mean)[varies] / sd[varies]
        ratio = values.std(0)[varies] / sd[varies]
        if not shift.max() <= off:
            off, worst = float(shift.max()), name
        low, high = min(low, float(ratio.min())), max(high, float(ratio.max()))
    return {"mean_off": off, "sd_low": low, "sd_high": high, "worst": worst}


def _base(name: str) -> str:
    """Name of the variable that a scalar such as ``theta.1`` or ``t:2`` is part of."""
    return name.partition(".")[0].partition(":")[0]


def measure(program: str, method: str, seed: int, references: str) -> Record:
    """The record of a comparison.

    Args:
        program: Name of the program.
        method: ``fit`` or ``fit_until``.
        seed: Seed of both.
        references: Folder of the references.
    """
    made = compare(program, method, seed, references=RecordStore(references))
    return {**asdict(made), "right": made.is_right}
