"""``softcvi report``: pages about fits that are on disk."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from softcvi.cli._common import Common, Flag, ImportLimit
from softcvi.cli._errors import FAILURE, CommandError
from softcvi.cli._folder import hold_folder, refuse_links
from softcvi.cli._reading import READING_SECONDS
from softcvi.cli._terminal import say, say_verdict

app = App(
    name="report",
    help="Make a self-contained HTML page from a folder that `softcvi fit` wrote; from "
    "several folders an index with a table that can be sorted.",
    help_epilogue="""\
Reading results never runs code from their folders: where coverage needs the
model of a fit, name it by --model.

examples:
  softcvi report softcvi-fit
  softcvi report fits/a --reference nuts.csv
  softcvi report fits/a --reference nuts.csv --model a.py:model --data y.json
  softcvi report fits/* --out comparison           an index, and a page each
  softcvi report a b --together --out both.html    a few on one page
""",
)


@app.default
def report(
    *folders: Annotated[
        Path, Parameter(name="DIR", metavar="DIR", help="Folders of softcvi fit.")
    ],
    reference: Annotated[
        Path | None,
        Parameter(
            help="Draws taken as the truth: CSV, NPZ or JSON, with the model's names."
        ),
    ] = None,
    model: Annotated[
        str | None,
        Parameter(help="FILE.py:NAME of the model that was fitted, for coverage."),
    ] = None,
    data: Annotated[Path | None, Parameter(help="The model's data.")] = None,
    out: Annotated[
        Path | None,
        Parameter(
            help="The page (DIR/report.html), or the folder of many (softcvi-report)."
        ),
    ] = None,
    together: Annotated[Flag, Parameter(help="Several fits on one page.")] = False,
    import_limit: ImportLimit = READING_SECONDS,
    quiet: Annotated[Flag, Parameter(help="Print nothing.")] = False,
    common: Common = Common(),  # noqa: B008
) -> None:
    """Make pages from folders that ``softcvi fit`` wrote."""
    if not folders:
        raise CommandError("required: DIR. Give a folder that softcvi fit wrote.")
    _refuse_unused(reference, model, data)
    if together and len(folders) == 1:
        raise CommandError("--together: needs several folders. Leave it out.")
    file = None if model is None else _named(model, data, import_limit)
    views = [_read(folder, reference, file) for folder in folders]
    page = _write(views, folders, out, together)
    for view in views:
        reasons = "; ".join(view.reasons)
        say_verdict(view.level, f"{view.title}: {reasons}", quiet=quiet)
    say(f"wrote {page}", quiet=quiet)


def _refuse_unused(
    reference: Path | None, model: str | None, data: Path | None
) -> None:
    if model is not None and reference is None:
        raise CommandError("--model: is of use only with --reference. Leave it out.")
    if data is not None and model is None:
        raise CommandError("--data: is of use only with --model. Leave it out.")


def _write(views: list, folders: tuple[Path, ...], out: Path | None, together) -> Path:
    from softcvi.report import write_index, write_report

    if len(views) > 1 and not together:
        out = out or Path("softcvi-report")
        if out.suffix == ".html":
            raise CommandError(
                f"--out {out}: several fits need a folder; or add --together for one "
                "page."
            )
        with hold_folder(out), _naming(folders):
            return write_index(views, out)
    alone = Path("softcvi-report.html") if together else folders[0] / "report.html"
    page = out or alone
    if out is None:
        refuse_links(page.parent, page.name)
    with hold_folder(page.parent), _naming(folders):
        return write_report(views, page)


@contextlib.contextmanager
def _naming(folders: tuple[Path, ...]) -> Iterator[None]:
    """What a page cannot be made from is named with its folder."""
    try:
        yield
    except (OSError, ImportError):
        raise
    except Exception as error:
        named = ", ".join(map(str, folders))
        raise CommandError(
            f"{named}: no page can be made from what is in there "
            f"({type(error).__name__}: {error}). Fit it again with softcvi fit.",
            FAILURE,
        ) from error


def _named(model: str, data: Path | None, seconds: float) -> Any:
    from softcvi.cli._model_file import ModelFile

    return ModelFile.parse(model, data, seconds)


def _read(folder: Path, reference: Path | None, file: Any):
    from softcvi.cli._data import read_draws
    from softcvi.report import needs_model, read_fit

    if reference is None:
        return read_fit(folder)
    draws = read_draws(reference)
    if file is not None:
        return read_fit(folder, draws, _target(folder, file))
    if needs_model(folder, draws):
        told = read_fit(folder).settings
        flags = f"--model {told.get('model', 'FILE.py:NAME')}"
        flags += f" --data {told['data']}" if "data" in told else ""
        raise CommandError(
            f"{folder}: coverage needs the model of this fit, and reading results "
            f"never imports one.\nGive {flags}, or --reference to softcvi fit."
        )
    return read_fit(folder, draws)


def _target(folder: Path, named: Any) -> Any:
    """The model that a fit used, from the files that the user named."""
    from softcvi.cli._fit_files import file_digest, read_record
    from softcvi.cli._model_kinds import MAKERS

    told = read_record(folder).get("settings", {})
    for file, what in ((named.path, "model"), (named.data_path, "data")):
        if file is None:
            continue
        if not file.is_file():
            raise CommandError(f"{file}: not found. Check --{what}.")
        if told.get(f"{what} sha256") not in (None, file_digest(file)):
            raise CommandError(
                f"{file}: was changed since {folder} was fitted, and coverage needs it "
                "as it was. Give the same file, or give --reference to softcvi fit."
            )
    kind = str(told.get("kind", "auto"))
    if kind not in ("auto", *MAKERS):
        raise CommandError(
            f"{folder}: its model is said to be of the kind {kind!r:.50}, which there "
            "is not. Fit it again with softcvi fit."
        )
    return named.load(named.read_data(), kind)
