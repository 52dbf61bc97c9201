"""Options that several commands share, and arguments by their names as options."""

import dataclasses
from typing import Annotated

from cyclopts import Group, Parameter

# On the command line it is there or not: no value, no default to show.
Flag = Annotated[bool, Parameter(show_default=False)]
_GROUP = Group("Common options", sort_key=100)
ImportLimit = Annotated[
    float,
    Parameter(help="Seconds that reading the model file may take; no limit is inf."),
]


@Parameter(name="*", group=_GROUP)
@dataclasses.dataclass(frozen=True)
class Common:
    """Options of every command.

    A command takes them as its parameter ``common``; ``prepare`` is called first.

    Example:
        >>> Common().traceback
        False
    """

    traceback: Flag = False
    """Show where an error came from."""

    def prepare(self) -> None:
        """Nothing to prepare."""


@Parameter(name="*", group=_GROUP)
@dataclasses.dataclass(frozen=True)
class Computing(Common):
    """Options of every command that compiles programs.

    Example:
        >>> Computing(no_cache=True).no_cache
        True
    """

    no_cache: Flag = False
    """Do not keep compiled programs on disk."""

    def prepare(self) -> None:
        """Turn on the cache of compiled programs and full precision of products."""
        import jax

        import softcvi

        if self.no_cache:
            softcvi.enable_compilation_cache(None)
        else:
            softcvi.enable_compilation_cache()
        # Reference draws and metrics need all digits of a product on accelerators too.
        jax.config.update("jax_default_matmul_precision", "highest")


_FLAGS = {
    "alpha": "--alpha",
    "guide": "--guide",
    "khat": "--until-khat",
    "num_particles": "--particles",
    "objective": "--objective",
    "starts": "--starts",
    "steps": "--steps",
}
# Remedies in Python, in the words of the command line.
_WORDS = {
    "softcvi.SoftCVI()": "--objective softcvi",
    "; pass allow_outside=True if that is meant": "",
}


def in_flags(text: str) -> str:
    """A message of the library that begins with an argument, for the command line."""
    argument, colon, rest = text.partition(":")
    if colon and argument == "checkpoint":
        # The library's remedy is a path or a deletion; here a flag does both.
        what = rest.rpartition(". ")[0]
        return (
            f"--resume:{what}. Give --overwrite in its place to start again, or "
            "another --out."
        )
    if not colon or argument not in _FLAGS:
        return text
    for python, shell in _WORDS.items():
        rest = rest.replace(python, shell)
    return f"{_FLAGS[argument]}:{rest}"


def names_a_flag(text: str) -> bool:
    """Whether a message of the library is about what a flag said."""
    return in_flags(text) != text
