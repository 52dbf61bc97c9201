"""``softcvi demo``: two posteriors, two methods, one page, about a minute."""

import argparse
import time
from pathlib import Path
from typing import Any

from softcvi.cli._terminal import make_reporter, say

_EPILOG = """\
examples:
  softcvi demo
  softcvi demo --out demo --picture slcp.png
"""
_NEXT = """\
try next:
  softcvi fit model.py:model --data data.json    your own model
  softcvi reproduce slcp --steps 5000            the paper's figure of the four modes
  softcvi --help                                 everything else"""
_PAIRS = {
    "slcp": ("theta[2]", "theta[3]"),
    "eight_schools": ("mu", "tau"),
}
_STEPS = {"slcp": 5000, "eight_schools": 3000}
_NAMES = {"softcvi": "SoftCVI", "elbo": "ELBO"}


def add_demo_parser(commands) -> None:
    """Add the command.

    Args:
        commands: What ``add_subparsers`` returned.

    Example:
        >>> parser = argparse.ArgumentParser()
        >>> add_demo_parser(parser.add_subparsers())
        >>> parser.parse_args(["demo"]).out
        PosixPath('softcvi-demo')
    """
    parser = commands.add_parser(
        "demo",
        help="fit two posteriors with SoftCVI and with the ELBO, and write a page",
        description="Fit SLCP (four modes) and eight schools (heavy tails) with "
        "SoftCVI and with the ELBO, and write one page with reference draws beside "
        "them. Takes about a minute on two cores; less the second time.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("softcvi-demo"),
        help="folder for the page (%(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed (%(default)s)")
    parser.add_argument("--steps", type=int, help="steps of each fit (5000 and 3000)")
    parser.add_argument(
        "--picture",
        type=Path,
        help="also draw SLCP as a PNG, SVG or PDF: reference, SoftCVI, ELBO",
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    from softcvi.report import write_report

    began = time.perf_counter()
    views = []
    for task in _PAIRS:
        pair = [_fit(task, method, args) for method in _NAMES]
        say(_side_by_side(pair), quiet=args.quiet)
        views += pair
    page = write_report(
        views, args.out / "demo.html", title="SoftCVI and the ELBO, side by side"
    )
    say(f"done in {time.perf_counter() - began:.0f} s", quiet=args.quiet)
    say(f"page       {page.resolve()}", quiet=args.quiet)
    if args.picture is not None:
        from softcvi.cli._picture import draw_pair

        draw_pair(views[: len(_NAMES)], args.picture)
        say(f"picture    {args.picture.resolve()}", quiet=args.quiet)
    say(f"\n{_NEXT}", quiet=args.quiet)


def _fit(task_name: str, method: str, args: argparse.Namespace) -> Any:
    import jax
    from softcvi_experiments.references import BuiltinReferences
    from softcvi_experiments.tasks import get_task

    import softcvi
    from softcvi.report import FitView

    task = get_task(task_name)
    reference = BuiltinReferences().load(task.posterior_name(0))
    observed = {k: jax.numpy.asarray(v, float) for k, v in reference.observed.items()}
    guide_key, fit_key = jax.random.split(jax.random.key(args.seed))
    steps = args.steps or _STEPS[task_name]
    name = f"{task.title}, {_NAMES[method]}"
    result = softcvi.fit(
        fit_key,
        task.target(observed),
        task.guide(guide_key),
        objective=softcvi.SoftCVI() if method == "softcvi" else softcvi.ELBO(),
        steps=steps,
        progress=make_reporter(args.quiet, name),
    )
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return FitView.from_result(
        result,
        name=_NAMES[method],
        method=method,
        posterior=task.title,
        settings={"task": task_name, "steps": steps, "seed": args.seed},
        reference=reference.draws,
        pair=_PAIRS[task_name],
    )


def _side_by_side(views: list[Any]) -> str:
    """What two fits of one posterior say, in columns."""
    width = 24
    rows = [
        (views[0].posterior, "reference", *(view.label for view in views)),
        ("verdict", "", *(view.level for view in views)),
        ("k-hat", "", *(f"{view.khat:.2f}" for view in views)),
        ("log prob of reference", "", *(_two(v.reference_log_prob) for v in views)),
        ("mean accuracy (0 best)", "", *(_two(v.mean_accuracy) for v in views)),
        ("seconds", "", *(f"{sum(v.seconds.values()):.1f}" for v in views)),
    ]
    for name in views[0].columns:
        columns = (views[0].reference, *(view.columns for view in views))
        cells = (f"{c[name].mean():.2f} ± {c[name].std():.2f}" for c in columns)
        rows.append((name, *cells))
    lines = [
        f"{row[0]:<{width}}" + "".join(f"{cell:>16}" for cell in row[1:])
        for row in rows
    ]
    return "\n" + "\n".join(line.rstrip() for line in lines) + "\n"


def _two(value: float) -> str:
    return f"{value:.2f}"
