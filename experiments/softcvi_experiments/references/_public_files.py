"""The public files of posteriordb 0.5.0 and sbibm 1.1.0, checked before use."""

import os
from pathlib import Path

from softcvi_experiments.references._checksum import read_sums, verify
from softcvi_experiments.references._errors import ReferenceFileError

_POSTERIORDB = (
    "https://raw.githubusercontent.com/stan-dev/posteriordb/0.5.0/posterior_database/"
)
_SBIBM = (
    "https://raw.githubusercontent.com/sbi-benchmark/sbibm/v1.1.0/"
    "sbibm/tasks/slcp/files/"
)


class PublicFiles:
    """Finds a public file in a folder, at a mirror or at its source.

    Downloads are kept in a cache (the folder named by ``SOFTCVI_CACHE_DIR``, or the
    system's), so that each file travels once.

    Args:
        location: A folder or the base URL of a mirror, either with the sub-folders
            ``posteriordb`` and ``sbibm_slcp``; the projects' own repositories if not
            given.

    Example:
        >>> len(PublicFiles().names)
        34
    """

    def __init__(self, location: str | Path | None = None) -> None:
        self._location = location
        self._sums = read_sums(Path(__file__).parent / "registry.txt")

    @property
    def names(self) -> list[str]:
        """The files, as paths inside the folder or mirror.

        Example:
            >>> PublicFiles().names[0]
            'posteriordb/eight_schools-eight_schools_noncentered.json.zip'
        """
        return list(self._sums)

    def path(self, name: str) -> Path:
        """Return an intact local copy.

        Args:
            name: One of :attr:`names`.

        Example:
            >>> PublicFiles("nowhere").path("posteriordb/garch.json.zip")
            Traceback (most recent call last):
            ...
            softcvi_experiments.references._errors.ReferenceFileError: reference ...
        """
        if self._location is None:
            return self._download(name, _source_url(name))
        if str(self._location).startswith(("http://", "https://")):
            return self._download(name, f"{str(self._location).rstrip('/')}/{name}")
        remedy = (
            f"download {_source_url(name)} into that place, or leave out --data-dir "
            "and run softcvi references fetch"
        )
        return verify(Path(self._location) / name, self._sums[name], remedy)

    def _download(self, name: str, url: str) -> Path:
        try:
            import pooch
        except ImportError as error:
            raise self._error(name, "needs pooch to be downloaded") from error
        cache = os.environ.get("SOFTCVI_CACHE_DIR") or pooch.os_cache("softcvi")
        digest = self._sums[name]
        target = Path(cache) / "references" / name
        try:
            pooch.retrieve(
                url,
                known_hash=f"sha256:{digest}",
                fname=target.name,
                path=target.parent,
            )
        except OSError as error:
            problem = f"could not be downloaded from {url} ({_first_line(error)})"
            raise self._error(name, problem) from error
        except ValueError as error:  # how pooch reports a wrong checksum
            problem = f"arrived damaged from {url}"
            raise self._error(name, problem) from error
        return target

    def _error(self, name: str, problem: str) -> ReferenceFileError:
        return ReferenceFileError(
            name,
            problem,
            f"SHA256 {self._sums[name]}",
            "pip install 'softcvi[experiments]' and softcvi references fetch while "
            "online, or name a folder or a mirror that has it with --data-dir",
        )


def _source_url(name: str) -> str:
    folder, _, rest = name.partition("/")
    if folder == "sbibm_slcp":
        return _SBIBM + rest
    # posteriordb keeps data and draws apart; draws are named data-model.
    kind = "reference_posteriors/draws/draws/" if "-" in rest else "data/data/"
    return _POSTERIORDB + kind + rest


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
