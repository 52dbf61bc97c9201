"""``softcvi bench``: speed and quality beside other libraries."""

import argparse
from pathlib import Path
from types import ModuleType

from softcvi.cli._errors import FAILURE, USAGE, CommandError
from softcvi.cli._terminal import say
from softcvi_experiments.cli._bench_zoo import add_zoo_options, bench_zoo

_SUITES = {
    "peers": "steps beside other libraries, our overhead, the race with NUTS",
    "growth": "how time and memory grow with all that can grow",
    "compile": "what imports and compilation cost, cold and cached",
    "figure": "the paper's main figure: one fit, many at once, the whole",
    "zoo": "28 models, every default method, judged by references",
}
_EPILOG = """\
suites:
{suites}

examples:
  softcvi bench --suite peers --out softcvi-bench
  softcvi bench --suite figure --fits 50 --full
  softcvi bench --suite growth --parts memory --quick
  softcvi bench --redraw results/bench/peers.json
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
    parser.add_argument("--suite", choices=tuple(_SUITES), help="what to measure")
    parser.add_argument(
        "--redraw",
        type=Path,
        metavar="FILE",
        help="print a stored result's table, and write table and plot beside it",
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, a try-out")
    parser.add_argument("--parts", help="parts of a suite, separated by commas (all)")
    parser.add_argument(
        "--repeats", type=int, default=5, help="runs behind each median"
    )
    parser.add_argument(
        "--fits", type=int, default=50, help="figure: fits in one program"
    )
    parser.add_argument(
        "--full", action="store_true", help="figure: all 50,000 steps of all methods"
    )
    add_zoo_options(parser)
    parser.set_defaults(run=_run, out=None)


def _run(args: argparse.Namespace) -> int | None:
    if args.redraw is not None:
        _redraw(args.redraw)
        return None
    if args.suite is None:
        known = ", ".join(_SUITES)
        raise CommandError(f"--suite: say what to measure, one of {known}", USAGE)
    args.out = args.out or Path(f"softcvi-bench-{args.suite}")
    if args.suite == "zoo":
        return bench_zoo(args)
    bench = _benchmarks(f"--suite {args.suite}")
    options = bench.Options(
        args.out,
        quick=args.quick,
        parts=tuple(args.parts.split(",")) if args.parts else (),
        repeats=args.repeats,
        fits=args.fits,
        full=args.full,
        say=say,
    )
    files = getattr(bench, f"bench_{args.suite}")(options)
    say()
    say(bench.speed_table(files[0]))
    return None


def _redraw(path: Path) -> None:
    bench = _benchmarks("--redraw")
    say(bench.speed_table(path))
    bench.redraw(path)


def _benchmarks(wanted: str) -> ModuleType:
    try:
        from softcvi_experiments import bench
    except ImportError as error:
        raise CommandError(
            f"{wanted}: this installation has no benchmarks ({error}). "
            "Install the experiments: pip install 'softcvi[experiments]'",
            FAILURE,
        ) from error
    return bench
