"""The Bayesian neural additive model: four methods, two widths, four rates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from softcvi.fitting import AbstractReporter, Silent
from softcvi.sweeps import RecordStore
from softcvi_experiments._figures import save_figure
from softcvi_experiments._methods import PAPER_METHODS, get_objective
from softcvi_experiments._reproduce import Reproduction
from softcvi_experiments.appendix._additive_metrics import (
    VALIDATION_SCORES,
    AdditiveMetrics,
    ValidationName,
    additive_metrics,
)
from softcvi_experiments.appendix._additive_model import (
    additive_data,
    additive_guide,
    additive_target,
)
from softcvi_experiments.appendix._additive_report import (
    additive_figure,
    additive_table,
    rates_table,
)
from softcvi_experiments.appendix._early_stopping import (
    Kept,
    PlainAdam,
    fit_keeping_best,
)

Record = dict[str, Any]


@dataclass(frozen=True)
class AdditiveSettings:
    """What the fits are run with; the paper's settings by default.

    Args:
        steps: Optimisation steps.
        every: Steps from one validation to the next.
        num_particles: K.
        validation: ``"published"`` scores 100 random pairs of a draw and a point as
            the paper did; ``"predictive"`` the log predictive density of all points.
        num_draws: Draws of a guide for the test metrics.

    Example:
        >>> AdditiveSettings(steps=10, every=5).num_particles
        8
    """

    steps: int = 100_000
    every: int = 100
    num_particles: int = 8
    validation: ValidationName = "published"
    num_draws: int = 1_000

    def __post_init__(self) -> None:
        if self.validation not in VALIDATION_SCORES:
            known = ", ".join(VALIDATION_SCORES)
            raise ValueError(f"unknown validation {self.validation!r}; known: {known}")
        if self.steps < self.every or self.steps % self.every:
            raise ValueError(
                f"steps: must be a multiple of the {self.every} steps from one "
                f"validation to the next; got {self.steps}"
            )


def fit_additive(
    method: str,
    width: int,
    rates: Sequence[float],
    seeds: Sequence[int],
    settings: AdditiveSettings,
    reporter: AbstractReporter | None = None,
) -> tuple[Kept, AdditiveMetrics]:
    """Fit all rates and seeds of a method in one program, and score them.

    Every seed has its own data and start, the same for all methods and rates.

    Args:
        method: The method's name.
        width: Hidden units of each feature's network.
        rates: Learning rates.
        seeds: Seeds.
        settings: What to run them with.
        reporter: Told how far the fits are.

    Returns:
        Fits and metrics with a leading axis that runs over rates within seeds.

    Example:
        >>> settings = AdditiveSettings(steps=4, every=2, num_draws=10)
        >>> kept, metrics = fit_additive("elbo", 3, [1e-3], [0], settings)
        >>> kept.scores.shape
        (1, 2)
    """
    seed_of = np.repeat(np.asarray(seeds), len(rates))
    keys = jax.vmap(lambda seed: jr.split(jr.key(seed), 4))(seed_of)
    data = jax.jit(jax.vmap(additive_data))(keys[:, 0])
    guides = eqx.filter_vmap(lambda key: additive_guide(key, width))(keys[:, 1])
    kept = fit_keeping_best(
        keys[:, 2],
        additive_target(data["train"], width),
        guides,
        data["validation"],
        VALIDATION_SCORES[settings.validation],
        objective=get_objective(method, settings.num_particles),
        optimizers=PlainAdam(jnp.tile(jnp.asarray(rates), len(seeds))),
        steps=settings.steps,
        every=settings.every,
        reporter=Silent() if reporter is None else reporter,
        description=f"width {width}, {method}",
    )
    metrics = additive_metrics(keys[:, 3], kept.guide, data["test"], settings.num_draws)
    return kept, metrics


def reproduce_neural_additive(
    out: str | Path,
    *,
    methods: Sequence[str] = PAPER_METHODS,
    widths: Sequence[int] = (50, 100),
    rates: Sequence[float] = (5e-5, 1e-4, 5e-4, 1e-3),
    num_seeds: int = 10,
    seed: int = 0,
    settings: AdditiveSettings | None = None,
    reporter: AbstractReporter | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Reproduction:
    """Fit every method and width, and compare with the paper's table.

    Writes ``records.jsonl``, ``table.md``, ``rates.md`` and ``components.png``,
    ``.svg``, ``.pdf``. Pieces that are on record are not fitted again.

    Args:
        out: Output folder.
        methods: Method names.
        widths: Hidden units of each feature's network.
        rates: Learning rates to choose from.
        num_seeds: Number of seeds.
        seed: The first of them; its components are drawn.
        settings: What to run the fits with.
        reporter: Told how far the fits are.
        say: Told a line on each finished piece.

    Example:
        >>> import tempfile
        >>> result = reproduce_neural_additive(
        ...     tempfile.mkdtemp(), methods=["elbo"], widths=[3], rates=[1e-3],
        ...     num_seeds=1, settings=AdditiveSettings(steps=4, every=2, num_draws=10),
        ... )
        >>> result.records[0]["method"]
        'elbo'
    """
    settings = AdditiveSettings() if settings is None else settings
    records = RecordStore(out)
    rows: list[Record] = []
    seeds = range(seed, seed + num_seeds)
    for width in widths:
        for method in methods:
            identity = {
                "experiment": "neural-additive",
                "method": method,
                "width": width,
                **vars(settings),
                # Records from before there was a seed have none.
                **({"seed": seed} if seed else {}),
            }
            wanted = [(run, rate) for run in seeds for rate in rates]
            found = {(r["run"], r["rate"]): r for r in records.find(identity)}
            if any(pair not in found for pair in wanted):
                fresh = _fresh_records(identity, rates, seeds, settings, reporter)
                records.add(r for r in fresh if (r["run"], r["rate"]) not in found)
                found = {(r["run"], r["rate"]): r for r in records.find(identity)}
            piece = [found[pair] for pair in wanted]
            say(f"width {width}, {method}: {piece[-1]['seconds_run']:.1f} s")
            rows += piece
    table = additive_table(rows)
    files = [records.path]
    for name, text in (("table.md", table), ("rates.md", rates_table(rows))):
        (records.folder / name).write_text(text + "\n")
        files.append(records.folder / name)
    files += save_figure(additive_figure(rows), out, "components")
    return Reproduction(rows, table, files)


def _fresh_records(
    identity: Record,
    rates: Sequence[float],
    seeds: Sequence[int],
    settings: AdditiveSettings,
    reporter: AbstractReporter | None,
) -> list[Record]:
    kept, metrics = fit_additive(
        identity["method"], identity["width"], rates, seeds, settings, reporter
    )
    device = jax.devices()[0]
    fits = [(seed, rate) for seed in seeds for rate in rates]
    fresh = []
    for i, (seed, rate) in enumerate(fits):
        record = {
            **identity,
            "run": seed,
            "rate": rate,
            "validation_score": round(float(kept.score[i]), 5),
            "best_step": int(kept.step[i]),
            "log_mean_likelihood": round(float(metrics.log_mean_likelihood[i]), 5),
            "log_predictive_density": round(
                float(metrics.log_predictive_density[i]), 5
            ),
            "prediction_iqr": round(float(metrics.prediction_iqr[i]), 5),
            "iqr_coverage": round(float(metrics.iqr_coverage[i]), 5),
            "seconds_compile": round(kept.seconds_compile, 3),
            "seconds_run": round(kept.seconds_run, 3),
            "fits_in_program": len(fits),
            "device": f"{device.platform} {device.device_kind}",
        }
        if seed == seeds[0]:
            record["components"] = {
                "grid": _rounded(metrics.grid[i]),
                "mean": _rounded(metrics.component_mean[i]),
                "low": _rounded(metrics.component_low[i]),
                "high": _rounded(metrics.component_high[i]),
            }
        fresh.append(record)
    return fresh


def _rounded(values: Any) -> Any:
    return np.round(np.asarray(values, dtype=float), 4).tolist()
