"""Making the references: one fresh process per model, in double precision."""

import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from softcvi_experiments.children import (
    ChildError,
    environment,
    failed_record,
    run_tasks,
)
from softcvi_experiments.zoo._model import ZooModel
from softcvi_experiments.zoo._reference import FOLDER, QUANTILES, Reference
from softcvi_experiments.zoo._registry import get, select

NUM_STORED = 1_000
MAX_RHAT = 1.01
MIN_ESS = 2_000.0
_TIMEOUT = 24 * 3600.0


def latent_shapes(model: ZooModel) -> dict[str, tuple[int, ...]]:
    """Shapes of the model's latent sites (no observations, no deterministics).

    Example:
        >>> from softcvi_experiments import zoo
        >>> latent_shapes(zoo.get("funnel"))
        {'v': (), 'x': (9,)}
    """
    import jax
    from numpyro import handlers

    def latents():
        trace = handlers.trace(handlers.seed(model.model, 0)).get_trace(
            *model.args, **model.kwargs
        )
        return {
            name: site["value"]
            for name, site in trace.items()
            if site["type"] == "sample" and not site["is_observed"]
        }

    # Nothing is computed: a prior draw may well overflow.
    return {name: value.shape for name, value in jax.eval_shape(latents).items()}


def build_reference(model: ZooModel, seed: int = 0, effort: float = 1.0) -> Reference:
    """Make the reference of one model in this process.

    Args:
        model: The zoo model.
        seed: Seed of the chains.
        effort: Multiplies the number of kept iterations.

    Example:
        >>> from softcvi_experiments import zoo
        >>> reference = build_reference(zoo.get("banana"), effort=0.05)
        >>> sorted(reference.mean)
        ['x', 'y']
    """
    import jax
    import numpyro
    from arviz_stats.base import array_stats

    start = time.perf_counter()
    by_chain = model.reference.draws(
        model.model, model.args, model.kwargs, seed, effort
    )
    by_chain = {site: by_chain[site] for site in latent_shapes(model)}
    scored = model.scored(by_chain)
    options = {"chain_axis": 0, "draw_axis": 1}
    rng = np.random.default_rng(seed)
    flat = {k: v.reshape(-1, *v.shape[2:]) for k, v in by_chain.items()}
    # With constant entries (a Cholesky factor's zeros) R-hat is undefined: nan.
    with np.errstate(invalid="ignore", divide="ignore"):
        rhat = {k: array_stats.rhat(v, **options) for k, v in scored.items()}
        ess = {k: array_stats.ess(v, **options) for k, v in scored.items()}
    flat = model.reference.finish(flat, rng)
    moments = model.scored(flat)
    size = len(next(iter(flat.values())))
    kept = np.sort(rng.permutation(size)[:NUM_STORED])
    chains, draws = next(iter(by_chain.values())).shape[:2]
    return Reference(
        mean={k: v.mean(0) for k, v in moments.items()},
        sd={k: v.std(0) for k, v in moments.items()},
        quantiles={k: np.quantile(v, QUANTILES, axis=0) for k, v in moments.items()},
        draws={k: v[kept] for k, v in flat.items()},
        rhat=rhat,
        ess=ess,
        provenance={
            "method": model.reference.provenance,
            "chains": chains,
            "draws_per_chain": draws,
            "seed": seed,
            "seconds": round(time.perf_counter() - start, 1),
            "jax": jax.__version__,
            "numpyro": numpyro.__version__,
            "x64": bool(jax.config.jax_enable_x64),
        },
    )


def build_and_save(name: str, folder: str, seed: int, effort: float) -> dict[str, str]:
    """Make, check and store one reference; returns a line that says how it went."""
    reference = build_reference(get(name), seed, effort)
    rhat, ess = reference.worst
    good = rhat < MAX_RHAT and ess > MIN_ESS
    # A reference that misses the bar is kept aside, never where it could be used.
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    reference.save(place / (f"{name}.npz" if good else f"{name}.rejected.npz"))
    line = (
        f"{name}: {'stored' if good else 'REJECTED'}, R-hat {rhat:.4f}, bulk ESS "
        f"{ess:.0f}, {reference.provenance['seconds']} s"
    )
    return {"line": line}


def build_references(
    models: Iterable[str] | None = None,
    *,
    folder: Path | str | None = None,
    processes: int = 1,
    seed: int = 0,
    effort: float = 1.0,
    overwrite: bool = False,
) -> list[str]:
    """Make the references of the zoo, each in its own process.

    A model whose reference is already there is left alone unless ``overwrite``.
    References with R-hat of 1.01 or more, or a bulk ESS of 2,000 or less, are set
    aside as ``NAME.rejected.npz``.

    Args:
        models: Names; the whole zoo if None.
        folder: Where to store; the package's own data folder if None.
        processes: How many models at a time.
        seed: Seed of the chains.
        effort: Multiplies the number of kept iterations.
        overwrite: Whether to make references again that are already there.

    Returns:
        One line per model saying how it went.
    """
    target = Path(folder or FOLDER)
    todo = [m.name for m in select(models)]
    if not overwrite:
        todo = [name for name in todo if not (target / f"{name}.npz").exists()]
    tasks = [
        {"name": n, "folder": str(target), "seed": seed, "effort": effort} for n in todo
    ]
    results = run_tasks(
        "softcvi_experiments.zoo._build:build_and_save",
        [[task] for task in tasks],
        jobs=processes,
        timeout=_TIMEOUT,
        env=environment(threads=1, x64=True),
        fresh=True,
    )
    lines = []
    for task, result in results:
        if isinstance(result, ChildError):
            result = failed_record(task, result)
        failed = f"{task['name']}: FAILED, {result.get('message')}"
        lines.append(result.get("line", failed))
        print(lines[-1], flush=True)
    return lines
