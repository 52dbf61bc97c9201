"""Options that several commands share."""

import dataclasses
from typing import Annotated

from cyclopts import Group, Parameter

# On the command line it is there or not: no value, no default to show.
Flag = Annotated[bool, Parameter(show_default=False)]
_GROUP = Group("Common options", sort_key=100)


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
