"""The appendix's figures of ``softcvi reproduce``, and the studies beyond the paper."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

APPENDIX = {
    "snr": "signal, noise and their ratio of gradients on a toy normal",
    "neural-additive": "the Bayesian neural additive model's table and components",
    "vae": "autoencoders: decoded manifolds, embeddings and test bounds",
    "negatives": "posterior^alpha beside proposal^alpha as negative",
    "studies": "divergences, temperature, smoothing, proposals or alpha (--study)",
}
APPENDIX_EXAMPLES = """\
  softcvi reproduce snr --quick
  softcvi reproduce neural-additive --methods elbo,softcvi-1 --widths 50
  softcvi reproduce vae --images mnist --batch-size 100 --steps 30000
  softcvi reproduce studies --study alpha --runs 20 --steps 10000
"""
Say = Callable[[str], None]


def add_appendix_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that only the appendix's figures have.

    Args:
        parser: The parser of ``softcvi reproduce``.

    Example:
        >>> parser = argparse.ArgumentParser()
        >>> add_appendix_options(parser)
        >>> parser.parse_args(["--rates", "1e-3,1e-4"]).rates
        [0.001, 0.0001]
    """
    group = parser.add_argument_group("options of the appendix's figures")
    group.add_argument(
        "--quick", action="store_true", help="a small form, for two cores"
    )
    group.add_argument(
        "--study",
        choices=("divergences", "temperature", "smoothing", "proposals", "alpha"),
        help="which study (studies)",
    )
    group.add_argument("--values", type=int, help="values of a parameter (snr: 200)")
    group.add_argument(
        "--gradients", type=int, help="gradients at each value (snr: 5000)"
    )
    group.add_argument(
        "--widths", type=_integers, help="hidden units (neural-additive: 50,100)"
    )
    group.add_argument(
        "--rates",
        type=_floats,
        help="learning rates (neural-additive: 5e-5,1e-4,5e-4,1e-3)",
    )
    group.add_argument(
        "--validation",
        choices=("published", "predictive"),
        help="what early stopping looks at (neural-additive: published)",
    )
    group.add_argument(
        "--images", choices=("digits", "mnist"), help="images (vae: digits)"
    )
    group.add_argument("--batch-size", type=int, help="images a step (vae: 1)")


def _integers(text: str) -> list[int]:
    return [int(word) for word in text.split(",") if word.strip()]


def _floats(text: str) -> list[float]:
    return [float(word) for word in text.split(",") if word.strip()]


def run_appendix(args: argparse.Namespace, out: Path, say: Say) -> Any:
    """Make one of the appendix's figures.

    Args:
        args: What the command line said.
        out: Output folder.
        say: Told a line on each finished piece.

    Example:
        >>> from softcvi.cli._main import make_parser
        >>> args = make_parser().parse_args(["reproduce", "studies"])
        >>> run_appendix(args, Path("nowhere"), print)
        Traceback (most recent call last):
        ...
        ValueError: --study: name one of divergences, temperature, ...
    """
    return _RUNNERS[args.what](args, out, say)


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _particles(args: argparse.Namespace) -> int | None:
    return args.particles[0] if args.particles else None


def _snr(args: argparse.Namespace, out: Path, say: Say) -> Any:
    from softcvi_experiments import appendix

    small = {"num_values": 48, "num_gradients": 500} if args.quick else {}
    options = _given(
        num_values=args.values, num_gradients=args.gradients, methods=args.methods
    )
    return appendix.reproduce_snr(out, seed=args.seed, say=say, **{**small, **options})


def _neural_additive(args: argparse.Namespace, out: Path, say: Say) -> Any:
    from softcvi.fitting import Lines
    from softcvi_experiments import appendix

    settings: dict[str, Any] = {}
    if args.quick:
        settings = {"steps": 2_000, "num_draws": 300}
    settings |= _given(
        steps=args.steps, num_particles=_particles(args), validation=args.validation
    )
    small = (
        {"widths": [50], "rates": [1e-3, 5e-3], "num_seeds": 2} if args.quick else {}
    )
    options = _given(
        methods=args.methods, widths=args.widths, rates=args.rates, num_seeds=args.runs
    )
    return appendix.reproduce_neural_additive(
        out,
        settings=appendix.AdditiveSettings(**settings),
        reporter=Lines(every=30.0),
        say=say,
        **{**small, **options},
    )


def _vae(args: argparse.Namespace, out: Path, say: Say) -> Any:
    from softcvi_experiments import appendix

    settings: dict[str, Any] = {}
    if args.quick:
        settings = {
            "steps": 5_000,
            "batch_size": 32,
            "rate": 1e-3,
            "hidden": (128, 64),
            "bound_draws": 100,
        }
    settings |= _given(
        images=args.images,
        batch_size=args.batch_size,
        steps=args.steps,
        num_particles=_particles(args),
        seed=args.seed,
    )
    return appendix.reproduce_vae(
        out,
        settings=appendix.VaeSettings(**settings),
        data_dir=args.data_dir,
        say=say,
        **_given(methods=args.methods),
    )


def _task_options(args: argparse.Namespace, steps: int, runs: int) -> dict[str, Any]:
    from softcvi_experiments import Settings

    settings = Settings(
        steps=steps if args.steps is None else args.steps,
        num_particles=_particles(args) or 8,
        recipe=args.recipe or ("default" if args.what == "studies" else "paper"),
        reference=args.reference,
        seed=args.seed,
    )
    return {
        "settings": settings,
        "runs": runs if args.runs is None else args.runs,
        "data_dir": args.data_dir,
        **_given(tasks=args.tasks),
    }


def _negatives(args: argparse.Namespace, out: Path, say: Say) -> Any:
    from softcvi_experiments import appendix

    size = (2_000, 2) if args.quick else (50_000, 50)
    return appendix.reproduce_negatives(out, say=say, **_task_options(args, *size))


def _studies(args: argparse.Namespace, out: Path, say: Say) -> Any:
    from softcvi_experiments import appendix

    if args.study is None:
        raise ValueError(f"--study: name one of {', '.join(appendix.STUDIES)}")
    size = (1_000, 2) if args.quick else (10_000, 20)
    return appendix.reproduce_study(
        out, study=args.study, say=say, **_task_options(args, *size)
    )


_RUNNERS: dict[str, Callable[[argparse.Namespace, Path, Say], Any]] = {
    "snr": _snr,
    "neural-additive": _neural_additive,
    "vae": _vae,
    "negatives": _negatives,
    "studies": _studies,
}
