"""The references this package ships, or a folder where they were built anew."""

from pathlib import Path

from softcvi_experiments.references._checksum import read_sums, verify
from softcvi_experiments.references._errors import ReferenceFileError
from softcvi_experiments.references._record import Reference
from softcvi_experiments.references._source import (
    POSTERIORS,
    AbstractReferenceSource,
    check_posterior,
)

SUMS = "SHA256SUMS"
_REMEDY = "softcvi references build --out DIR, then name it with --data-dir DIR"


class BuiltinReferences(AbstractReferenceSource):
    """Our own reference posteriors, at hand without a network.

    The GARCH and SLCP data are simulated; the eight schools data are the published
    ones.

    Args:
        data_dir: A folder written by ``softcvi references build``; the files inside
            the package if not given.

    Example:
        >>> reference = BuiltinReferences().load("garch_paper")
        >>> sorted(reference.draws)
        ['alpha0', 'alpha1', 'beta1', 'mu']
    """

    name = "builtin"

    def __init__(self, data_dir: str | Path | None = None) -> None:
        self._folder = Path(data_dir) if data_dir else Path(__file__).parent / "data"

    def load(self, posterior: str) -> Reference:
        """Read one posterior.

        Args:
            posterior: Its name.

        Example:
            >>> BuiltinReferences().load("slcp_10").observed["x"].shape
            (4, 2)
        """
        return Reference.read(self._file(check_posterior(posterior)))

    def fetch(self) -> list[Path]:
        """Check every file.

        Example:
            >>> BuiltinReferences().fetch()[0].name
            'eight_schools.npz'
        """
        return [self._file(posterior) for posterior in POSTERIORS]

    def _file(self, posterior: str) -> Path:
        sums = self._folder / SUMS
        if not sums.is_file():
            raise ReferenceFileError(
                sums, "is missing", f"a list of the files in {self._folder}", _REMEDY
            )
        name = f"{posterior}.npz"
        listed = read_sums(sums)
        if name not in listed:
            raise ReferenceFileError(
                self._folder / name, "is missing", f"a line of {SUMS}", _REMEDY
            )
        return verify(self._folder / name, listed[name], _REMEDY)
