"""``softcvi references``: build, list or fetch reference posteriors."""

import argparse
from pathlib import Path
from typing import Any

_EPILOG = """\
actions:
  list    what is at hand, with R-hat, effective sample size and provenance
  fetch   download the paper's references (posteriordb, sbibm) and check them
  build   make our own anew, as those inside the package were made (some 15 minutes)

examples:
  softcvi references list
  softcvi references fetch
  softcvi references fetch --data-dir https://mirror.example/reference
  softcvi references build --out references --only slcp_01,slcp_02
  softcvi reproduce metrics --data-dir references
"""


def add_references_parser(commands: Any) -> None:
    """Add the command.

    Args:
        commands: What ``add_subparsers`` returned.

    Example:
        >>> parser = argparse.ArgumentParser()
        >>> add_references_parser(parser.add_subparsers())
        >>> parser.parse_args(["references", "build", "--seed", "3"]).seed
        3
    """
    parser = commands.add_parser(
        "references",
        help="build, list or fetch reference posteriors",
        description="Build, list or fetch the draws that fits are judged by.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=tuple(_ACTIONS), help="what to do")
    parser.add_argument(
        "--reference",
        help="builtin or posteriordb-sbibm (list: builtin; fetch: posteriordb-sbibm)",
    )
    parser.add_argument(
        "--data-dir", help="folder, or a mirror's address, with the files"
    )
    parser.add_argument(
        "--only", help="posteriors to build or list, separated by commas (all)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed (%(default)s)")
    parser.add_argument(
        "--prior-draws",
        type=int,
        default=40_000_000,
        help="prior draws for each SLCP observation (%(default)s)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("softcvi-references"),
        help="folder to build in (%(default)s)",
    )
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    _ACTIONS[args.action](args)


def _posteriors(args: argparse.Namespace) -> list[str]:
    from softcvi_experiments.references import POSTERIORS

    return args.only.split(",") if args.only else list(POSTERIORS)


def _build(args: argparse.Namespace) -> None:
    from softcvi_experiments.references import build

    build(
        args.out,
        _posteriors(args),
        seed=args.seed,
        prior_draws=args.prior_draws,
        report=lambda line: print(line, flush=True),
    )
    print(f"written to {args.out}; use them with --data-dir {args.out}")


def _list(args: argparse.Namespace) -> None:
    from softcvi_experiments.references import get_source

    source = get_source(args.reference or "builtin", args.data_dir)
    for posterior in _posteriors(args):
        reference = source.load(posterior)
        print(f"{reference.describe()}; {reference.provenance['method']}")


def _fetch(args: argparse.Namespace) -> None:
    from softcvi_experiments.references import get_source

    source = get_source(args.reference or "posteriordb-sbibm", args.data_dir)
    paths = source.fetch()
    print(f"{len(paths)} files of {source.name} are at hand and intact")


_ACTIONS = {"list": _list, "fetch": _fetch, "build": _build}
