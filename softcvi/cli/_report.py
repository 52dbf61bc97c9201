"""``softcvi report``: pages about fits that are on disk."""

import argparse
from pathlib import Path

from softcvi.cli._errors import CommandError
from softcvi.cli._terminal import say

_EPILOG = """\
examples:
  softcvi report softcvi-fit
  softcvi report softcvi-fit --reference nuts.csv      with coverage
  softcvi report fits/* --out comparison               an index, and a page each
  softcvi report a b --together --out both.html        a few on one page
"""


def add_report_parser(commands) -> None:
    """Add the command.

    Args:
        commands: What ``add_subparsers`` returned.

    Example:
        >>> parser = argparse.ArgumentParser()
        >>> add_report_parser(parser.add_subparsers())
        >>> parser.parse_args(["report", "a", "b"]).folders
        [PosixPath('a'), PosixPath('b')]
    """
    parser = commands.add_parser(
        "report",
        help="make an HTML page, or an index of many, from fits on disk",
        description="Make a self-contained HTML page from a folder that `softcvi fit` "
        "wrote; from several folders an index with a table that can be sorted.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "folders", nargs="+", type=Path, metavar="DIR", help="folders of softcvi fit"
    )
    parser.add_argument(
        "--reference",
        type=Path,
        metavar="FILE",
        help="draws taken as the truth: CSV, NPZ or JSON, with the model's names",
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="the page (DIR/report.html), or the folder of many (softcvi-report)",
    )
    parser.add_argument(
        "--together", action="store_true", help="several fits on one page"
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    from softcvi.cli._data import read_draws
    from softcvi.report import read_fit, write_index, write_report

    reference = None if args.reference is None else read_draws(args.reference)
    views = [read_fit(folder, reference) for folder in args.folders]
    if len(views) == 1:
        page = write_report(views, args.out or args.folders[0] / "report.html")
    elif args.together:
        page = write_report(views, args.out or Path("softcvi-report.html"))
    else:
        out = args.out or Path("softcvi-report")
        if out.suffix == ".html":
            raise CommandError(
                f"--out {out}: several fits need a folder; or add --together for one "
                "page."
            )
        page = write_index(views, out)
    say(f"wrote {page}", quiet=args.quiet)
