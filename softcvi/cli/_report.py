"""``softcvi report``: pages about fits that are on disk."""

import argparse
import functools
import os
from pathlib import Path
from typing import Any

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
    views = [
        read_fit(folder, reference, functools.partial(_target_again, folder))
        for folder in args.folders
    ]
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


def _target_again(folder: Path, settings: dict[str, Any]):
    """The model that a fit used, from the files that its folder names."""
    from softcvi.cli._data import read_data
    from softcvi.cli._model_file import load_target, split_name

    path, name = split_name(settings.get("model", "the model's file"))
    model = _find_file(folder, path, settings.get("model sha256"))
    data = {}
    if "data" in settings:
        file = _find_file(folder, Path(settings["data"]), settings.get("data sha256"))
        data = read_data(file)
    return load_target(model, name, data, settings.get("kind", "auto"))


def _find_file(folder: Path, file: Path, sha256: str | None) -> Path:
    """A file as it was at the fit: here, one folder below, or beside the fit."""
    from softcvi.cli._fit_files import file_digest

    below = sorted(path for path in Path().iterdir() if path.is_dir())
    places = (Path(), folder, folder.resolve().parent, *below)
    # Path.is_file would stop at a folder that may not be read.
    found = [place / file for place in places if os.path.isfile(place / file)]
    for path in found:
        if sha256 in (None, file_digest(path)):
            return path
    state = "was changed" if found else "not found"
    raise CommandError(
        f"{found[0] if found else file}: {state}, and coverage needs it as it was when "
        f"{folder} was fitted. Run this beside the same file, or give --reference to "
        "softcvi fit at fitting time."
    )
