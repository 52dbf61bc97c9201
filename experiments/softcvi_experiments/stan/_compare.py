"""Fits of Stan programs beside long NUTS runs on the same programs."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import jax
import numpy as np

import softcvi
from softcvi.adapters import StanTarget
from softcvi_experiments.stan._programs import target as target_of

Draws = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Comparison:
    """How a fit compares with NUTS, over all parameters and transformed parameters.

    Attributes:
        name: The program.
        dimension: Number of unconstrained parameters.
        mean_off: Largest difference of a mean, in NUTS's standard deviations.
        sd_ratio: Smallest and largest ratio of standard deviations.
        verdict: Level of the verdict on the fit.
        reasons: Why, in words.
        seconds: Of the fit, with its compilation.
        rejections: Points at which the program gave no density.
        rhat: Largest R-hat of NUTS.
        ess: Smallest effective sample size of NUTS.
        seconds_nuts: Of NUTS, with its compilation.

    Example:
        >>> figures = {"mean_off": 0.05, "sd_ratio": (0.98, 1.03), "seconds": 5.0}
        >>> chains = {"rhat": 1.0, "ess": 4000.0, "seconds_nuts": 9.0}
        >>> facts = {"verdict": "trusted", "reasons": (), "rejections": 0}
        >>> row = Comparison(name="a", dimension=2, **figures, **chains, **facts)
        >>> row.is_right
        True
    """

    name: str
    dimension: int
    mean_off: float
    sd_ratio: tuple[float, float]
    verdict: str
    reasons: tuple[str, ...]
    seconds: float
    rejections: int
    rhat: float
    ess: float
    seconds_nuts: float

    @property
    def is_right(self) -> bool:
        """Means within 0.1 standard deviations, standard deviations within 10 %."""
        low, high = self.sd_ratio
        return self.mean_off <= 0.1 and low >= 0.9 and high <= 1.1


def nuts(
    target: StanTarget,
    seed: int = 0,
    *,
    start: Draws | None = None,
    chains: int = 16,
    warmup: int = 600,
    draws: int = 700,
) -> dict[str, np.ndarray]:
    """Draws of NumPyro's NUTS on a Stan program, by chain.

    Many chains, since all of them are evaluated in one call.

    Args:
        target: The program.
        seed: Seed of the chains.
        start: Draws to start from, a chain at each of the first ones; by default
            dispersed points. Far from the posterior a chain in raw units takes the
            longest paths there are, for all of its warm-up.
        chains: Number of chains.
        warmup: Iterations to adapt in, with a dense mass matrix.
        draws: Iterations kept per chain.

    Example:
        >>> from softcvi_experiments import stan
        >>> target = stan.target("garch11")  # doctest: +SKIP
        >>> stan.nuts(target)["mu"].shape  # doctest: +SKIP
        (16, 700)
    """
    from numpyro.infer import MCMC, NUTS

    def potential(u):
        return -target.log_density({"unconstrained": u})

    kernel = NUTS(potential_fn=potential, dense_mass=True, target_accept_prob=0.9)
    sampler = MCMC(
        kernel,
        num_warmup=warmup,
        num_samples=draws,
        num_chains=chains,
        chain_method="vectorized",
        progress_bar=False,
    )
    key = jax.random.key(seed)
    if start is None:
        starts = jax.vmap(target.initial_particle)(jax.random.split(key, chains))
    else:
        first = {name: values[:chains] for name, values in start.items()}
        starts = jax.vmap(lambda x: target.space.from_model_and_log_det(x)[0])(first)
    sampler.run(jax.random.PRNGKey(seed), init_params=starts["unconstrained"])
    kept = sampler.get_samples(group_by_chain=True)
    describe = jax.jit(jax.vmap(jax.vmap(target.describe)))
    return {k: np.asarray(v) for k, v in describe({"unconstrained": kept}).items()}


def compare(
    name: str, seed: int = 0, *, fit: Callable = softcvi.fit_until
) -> Comparison:
    """Fit one program and compare with NUTS.

    Args:
        name: The program.
        seed: Seed of both.
        fit: ``softcvi.fit_until`` or ``softcvi.fit``.

    Example:
        >>> from softcvi_experiments import stan
        >>> stan.compare("garch11").is_right  # doctest: +SKIP
        True
    """
    target = target_of(name)
    began = time.perf_counter()
    result = fit(jax.random.key(seed), target, progress=False)
    draws = result.sample(jax.random.key(seed + 1), 8000)
    seconds, rejections = time.perf_counter() - began, target.rejections
    began = time.perf_counter()
    reference = nuts(target, seed, start=draws)
    seconds_nuts = time.perf_counter() - began
    rhat, ess = _convergence(reference)
    mean_off, sd_ratio = _difference(draws, reference)
    return Comparison(
        name=name,
        dimension=target.structure.size,
        mean_off=mean_off,
        sd_ratio=sd_ratio,
        verdict=str(result.verdict.level),
        reasons=tuple(result.verdict.reasons),
        seconds=round(seconds, 1),
        rejections=rejections,
        rhat=rhat,
        ess=ess,
        seconds_nuts=round(seconds_nuts, 1),
    )


def _difference(draws: Draws, chains: Draws) -> tuple[float, tuple[float, float]]:
    """Largest difference of means in standard deviations, and ratios of the latter."""
    off, low, high = 0.0, np.inf, 0.0
    for name, by_chain in chains.items():
        flat = by_chain.reshape(-1, *by_chain.shape[2:]).astype(np.float64)
        sd = flat.std(0)
        varies = sd > 1e-12 * (1 + np.abs(flat.mean(0)))  # not a Cholesky factor's zero
        if not np.any(varies):
            continue
        values = np.asarray(draws[name], np.float64)
        shift = np.abs(values.mean(0) - flat.mean(0))[varies] / sd[varies]
        ratio = values.std(0)[varies] / sd[varies]
        off, low = max(off, float(shift.max())), min(low, float(ratio.min()))
        high = max(high, float(ratio.max()))
    return off, (low, high)


def _convergence(chains: Draws) -> tuple[float, float]:
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    rhat, ess = 1.0, np.inf
    with np.errstate(invalid="ignore", divide="ignore"):
        for values in chains.values():
            if not np.any(values.std((0, 1)) > 0):
                continue
            rhat = max(rhat, float(np.nanmax(split_gelman_rubin(values))))
            ess = min(ess, float(np.nanmin(effective_sample_size(values))))
    return rhat, ess


def record(names: Iterable[str], out: Path, seed: int = 0) -> list[Comparison]:
    """Compare programs one after the other, one line of JSON for each.

    Args:
        names: Programs; those with a line in the file already are left out.
        out: File to append to.
        seed: Seed of the fits and the chains.

    Example:
        >>> import pathlib, tempfile
        >>> from softcvi_experiments import stan
        >>> stan.record([], pathlib.Path(tempfile.mkdtemp()) / "stan.jsonl")
        []
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = out.read_text().splitlines() if out.is_file() else []
    done = {json.loads(line)["name"] for line in lines}
    made = []
    for name in names:
        if name in done:
            continue
        made.append(compare(name, seed))
        with out.open("a") as file:
            file.write(json.dumps(asdict(made[-1])) + "\n")
    return made
