"""``softcvi references``: build, list or fetch reference posteriors."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from softcvi.cli import Common, Computing, hold_folder, say
from softcvi_experiments import references
from softcvi_experiments.cli._options import Names

_DATA_DIR = Parameter(help="Folder, or a mirror's address, with the files.")
_SOURCE = Parameter(help="builtin or posteriordb-sbibm.")


def list(
    *,
    only: Annotated[
        Names, Parameter(help="Posteriors, separated by commas (all).")
    ] = None,
    reference: Annotated[str, _SOURCE] = "builtin",
    data_dir: Annotated[str | None, _DATA_DIR] = None,
    common: Common = Common(),  # noqa: B008
) -> None:
    """What is available, with R-hat, effective sample size and provenance."""
    source = references.get_source(reference, data_dir)
    for posterior in only or references.POSTERIORS:
        found = source.load(posterior)
        say(f"{found.describe()}; {found.provenance['method']}")


def fetch(
    *,
    reference: Annotated[str, _SOURCE] = "posteriordb-sbibm",
    data_dir: Annotated[str | None, _DATA_DIR] = None,
    common: Common = Common(),  # noqa: B008
) -> None:
    """Download the paper's references (posteriordb, sbibm) and check them."""
    source = references.get_source(reference, data_dir)
    say(f"{len(source.fetch())} files of {source.name} are at hand and intact")


def build(
    *,
    only: Annotated[
        Names, Parameter(help="Posteriors, separated by commas (all).")
    ] = None,
    seed: Annotated[int, Parameter(help="Seed.")] = 0,
    prior_draws: Annotated[
        int, Parameter(help="Prior draws for each SLCP observation.")
    ] = 40_000_000,
    out: Annotated[Path, Parameter(help="Folder to build in.")] = Path(
        "softcvi-references"
    ),
    common: Computing = Computing(),  # noqa: B008
) -> None:
    """Make our own again, as those in the package were made."""
    with hold_folder(out):
        references.build(
            out,
            [*(only or references.POSTERIORS)],
            seed=seed,
            prior_draws=prior_draws,
            report=say,
        )
    say(f"written to {out}; use them with --data-dir {out}")
