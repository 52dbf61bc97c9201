"""``softcvi bench``: speed and quality beside other libraries."""

import argparse
from collections.abc import Callable
from pathlib import Path

from softcvi.cli._bench_zoo import add_zoo_options, bench_zoo
from softcvi.cli._errors import FAILURE, CommandError

_SUITES = {
    "peers": "speed and quality beside other libraries",
    "growth": "how time grows with dimension and particles",
    "compile": "what compilation costs, cold and cached",
    "figure": "the figure of the speed comparison",
    "zoo": "28 models, every default method, judged by references",
}
_EPILOG = """\
suites:
{suites}

examples:
  softcvi bench --suite peers --out softcvi-bench
  softcvi bench --suite zoo --models banana,funnel --seeds 0,1
"""


def add_bench_parser(commands) -> None:
    """Add the command.

    Args:
        commands: What ``add_subparsers`` returned.

    Example:
        >>> parser = argparse.ArgumentParser()
        >>> add_bench_parser(parser.add_subparsers())
        >>> parser.parse_args(["bench", "--suite", "growth"]).suite
        'growth'
    """
    listed = "\n".join(f"  {name:<8} {text}" for name, text in _SUITES.items())
    parser = commands.add_parser(
        "bench",
        help="measure speed and quality beside other libraries",
        description="Measure speed and quality; every number in the README comes "
        "out of here.",
        epilog=_EPILOG.format(suites=listed),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--suite", choices=tuple(_SUITES), required=True, help="what to measure"
    )
    add_zoo_options(parser)
    parser.set_defaults(run=_run, out=None)


def _run(args: argparse.Namespace) -> int | None:
    args.out = args.out or Path(f"softcvi-bench-{args.suite}")
    if args.suite == "zoo":
        return bench_zoo(args)
    return _find(args.suite)(args.out)


def _find(suite: str) -> Callable[[Path], int | None]:
    """The suite's function: ``bench_<suite>(out)`` of ``softcvi.experiments.bench``."""
    try:
        from softcvi.experiments import bench
    except ImportError as error:
        raise CommandError(
            f"--suite {suite}: this installation has no benchmarks ({error}). "
            "Install the experiments: pip install 'softcvi[experiments]'",
            FAILURE,
        ) from error
    function = getattr(bench, f"bench_{suite}", None)
    if function is None:
        raise CommandError(f"--suite {suite}: not part of this version", FAILURE)
    return function
