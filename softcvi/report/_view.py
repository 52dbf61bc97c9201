"""What a page needs to know of one fit, as plain numbers that can be stored."""

import dataclasses
import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from softcvi.diagnostics import coverage, mean_accuracy
from softcvi.fitting import FitResult
from softcvi.ladder import LadderResult
from softcvi.posterior import Posterior
from softcvi.report._columns import Columns, as_columns
from softcvi.report._reference import has_all_of, worse, worst_shift
from softcvi.report.style import Style, style_of

_MAX_COLUMNS = 2000
_MAX_REFERENCE = 4000
_DRAWS = 4000
_COMPARE = "Compare another guide, objective or seed with the reference."

HISTORY = ("step", "excess", "label_ess", "elbo")


@dataclasses.dataclass(frozen=True)
class FitView:
    """One fit as a page shows it.

    Make one from a result with ``from_result``, or read one that the command line
    stored with ``read_fit``.

    Args:
        name: What the page calls the fit.
        method: ``"softcvi"``, ``"elbo"``, ``"snis-fkl"`` or another; fixes the colour.
        posterior: The posterior it is for; fits of one posterior share charts.
        status: How it ended.
        message: The same in words.
        level: ``"trusted"``, ``"caution"`` or ``"not trusted"``.
        reasons: Why.
        advice: What to try next.
        named: Scalars that the verdict is about, which a page shows first.
        history: Arrays ``step``, ``excess``, ``label_ess`` and ``elbo``.
        columns: Draws of the answer, those that the verdict is about: one array per
            scalar.
        num_particles: K.
        steps: Steps done.
        seconds: Wall times by name.
        draws_are: Where the draws come from, in words.
        log_weights: Normalised log weights of the guide's draws, in any order.
        log_q: Log density of the guide at its own draws, in any order.
        khat: Pareto k-hat of the weights.
        ess_share: Effective share of the draws.
        log_evidence: Estimate of the log marginal likelihood.
        num_bad: Log densities that were no numbers, and steps skipped for that.
        choices: What the program chose, and why.
        settings: What it was told.
        versions: What it ran on.
        reference: Draws taken as the truth, as columns.
        coverage: Nominal and actual coverage of the reference.
        reference_log_prob: Mean log density of the guide at the reference draws.
        mean_accuracy: Minus the distance of the means, in standard deviations.
        pair: The two scalars that are worth a picture.
        source: The folder it was read from, if any.
        own_style: How it is drawn where its method is drawn more than once.

    Example:
        >>> view = FitView.example()
        >>> view.level, list(view.columns)
        ('trusted', ['mu', 'tau'])
    """

    name: str
    method: str
    posterior: str
    status: str
    message: str
    level: str
    reasons: tuple[str, ...]
    history: dict[str, np.ndarray]
    columns: Columns
    num_particles: int
    steps: int
    seconds: dict[str, float]
    draws_are: str = ""
    log_weights: np.ndarray | None = None
    log_q: np.ndarray | None = None
    khat: float | None = None
    ess_share: float | None = None
    log_evidence: float | None = None
    num_bad: tuple[int, int] = (0, 0)
    choices: dict[str, str] = dataclasses.field(default_factory=dict)
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    reference: Columns | None = None
    coverage: tuple[np.ndarray, np.ndarray] | None = None
    reference_log_prob: float | None = None
    mean_accuracy: float | None = None
    pair: tuple[str, str] | None = None
    source: str = ""
    own_style: Style | None = None
    advice: tuple[str, ...] = ()
    named: tuple[str, ...] = ()

    @property
    def style(self) -> Style:
        """Its own, or that of its method."""
        return self.own_style or style_of(self.method)

    @property
    def label(self) -> str:
        """The name, or that of the method if there is none."""
        return self.name or style_of(self.method).label

    @property
    def title(self) -> str:
        """Posterior and name."""
        return f"{self.posterior}, {self.label}" if self.posterior else self.label

    def last(self, name: str) -> float | None:
        """Mean of a curve over the last tenth of the run."""
        tail = self.history[name][-max(1, len(self.history[name]) // 10) :]
        tail = tail[np.isfinite(tail)]
        return float(tail.mean()) if tail.size else None

    @classmethod
    def from_result(
        cls,
        result: FitResult | LadderResult,
        *,
        draws: Mapping[str, Any] | None = None,
        name: str = "",
        method: str = "softcvi",
        posterior: str = "",
        settings: Mapping[str, Any] | None = None,
        reference: Mapping[str, Any] | None = None,
        pair: tuple[str, str] | None = None,
    ) -> "FitView":
        """Look at a result.

        Args:
            result: What ``softcvi.fit`` or ``softcvi.fit_until`` returned.
            draws: Draws of its ``sample``; 4000 by default.
            name: What to call it.
            method: Its method, for the colour.
            posterior: Name of the posterior.
            settings: What the fit was told, to repeat it.
            reference: Draws taken as the truth, named arrays in model coordinates.
            pair: Two scalars for the picture, such as ``("theta[2]", "theta[3]")``.
        """
        sample, verdict = result.importance, result.verdict
        if draws is None:
            draws = result.sample(jax.random.key(0), _DRAWS)
        view = cls(
            name=name,
            method=method,
            posterior=posterior,
            status=result.status,
            message=result.message,
            level=verdict.level,
            reasons=tuple(verdict.reasons),
            advice=tuple(verdict.advice),
            history={n: np.asarray(getattr(result.history, n), float) for n in HISTORY},
            columns=as_columns(draws, _MAX_COLUMNS),
            draws_are=result.draws_are,
            num_particles=result.num_particles,
            steps=result.steps,
            seconds={
                "start": result.seconds_start,
                "compilation": result.seconds_compile,
                "steps": result.seconds_run,
            },
            log_weights=np.asarray(sample.log_weights),
            log_q=np.asarray(sample.log_q),
            khat=float(sample.khat),
            ess_share=float(verdict.ess_share),
            log_evidence=float(sample.log_evidence),
            num_bad=(result.num_bad_densities, result.num_skipped_steps),
            choices=dict(result.choices),
            settings=dict(settings or {}),
            versions=versions(),
            pair=pair,
        )
        return view.with_reference(reference, result.posterior)

    def with_reference(
        self, reference: Mapping[str, Any] | None, posterior: Posterior | None = None
    ) -> "FitView":
        """The same fit beside draws taken as the truth.

        Args:
            reference: Named arrays in model coordinates.
            posterior: The fitted posterior, for coverage and log probability.
        """
        if reference is None:
            return self
        thinned = {name: _thin(np.asarray(v)) for name, v in reference.items()}
        changes: dict[str, Any] = {"reference": as_columns(thinned, _MAX_COLUMNS)}
        shared = [n for n in changes["reference"] if n in self.columns]
        if shared:
            ours, theirs = (
                {n: np.asarray(c[n], float) for n in shared}
                for c in (self.columns, changes["reference"])
            )
            changes["mean_accuracy"] = float(mean_accuracy(ours, theirs))
            shift = worst_shift(ours, theirs)
            if shift.reason:
                changes["level"] = worse(self.level, shift.level)
                kept = () if self.level == "trusted" else self.reasons
                changes["reasons"] = (shift.reason, *kept)
                changes["advice"] = (*self.advice, _COMPARE)
                changes["named"] = (shift.name, *self.named)
        if posterior is not None and has_all_of(posterior.guide.structure, thinned):
            latent = posterior.guide.structure.names
            at_reference = posterior.log_prob({n: thinned[n] for n in latent})
            if self.log_q is not None:
                nominal, actual = coverage(self.log_q, at_reference)
                changes["coverage"] = (np.asarray(nominal), np.asarray(actual))
            changes["reference_log_prob"] = float(np.mean(np.asarray(at_reference)))
        return dataclasses.replace(self, **changes)

    @classmethod
    def example(cls) -> "FitView":
        """A small made-up fit, to look at the page with."""
        rng = np.random.default_rng(0)
        step = np.arange(1, 101) * 10.0
        log_weights = 0.1 * rng.normal(size=500)
        return cls(
            name="SoftCVI",
            method="softcvi",
            posterior="example",
            status="finished",
            message="all steps done",
            level="trusted",
            reasons=("k-hat 0.21, 97% of the draws carry weight",),
            history={
                "step": step,
                "excess": 2 * np.exp(-step / 200) + 0.01,
                "label_ess": 7 - 4 * np.exp(-step / 200),
                "elbo": -30 - 20 * np.exp(-step / 200),
            },
            columns={"mu": rng.normal(size=500), "tau": rng.gamma(2.0, size=500)},
            num_particles=8,
            steps=1000,
            seconds={"start": 0.1, "compilation": 1.0, "steps": 0.5},
            draws_are="corrected by importance weights",
            log_weights=log_weights - np.log(np.sum(np.exp(log_weights))),
            khat=0.21,
            ess_share=0.97,
            log_evidence=-29.5,
        )


def _thin(values: np.ndarray) -> np.ndarray:
    every = -(-len(values) // _MAX_REFERENCE)
    return values[::every]


def by_interest(views: Sequence[FitView]) -> list[str]:
    """Scalars that a verdict names, then scalar parameters, then elements of arrays."""
    named = {name for view in views for name in view.named}

    def rank(name: str) -> int:
        if name in named:
            return 0
        return 2 if name.endswith("]") else 1

    return sorted(views[0].columns, key=rank)


_PACKAGES = ("softcvi", "jax", "jaxlib", "equinox", "flowjax", "optax", "numpy")


def versions() -> dict[str, str]:
    """Versions of what decides the numbers, and the device."""
    found = {"Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    device = jax.devices()[0]
    names = dict.fromkeys((device.platform, device.device_kind))
    found["device"] = " ".join(name for name in names if name)
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["float64"] = "yes" if jax.config.jax_enable_x64 else "no"
    return found
