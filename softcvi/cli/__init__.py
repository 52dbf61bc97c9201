"""The command line: ``softcvi demo``, ``fit``, ``sweep``, ``report``.

Other distributions add commands by entry points of the group ``softcvi.commands``.
"""

from softcvi.cli._common import Common, Computing, Flag
from softcvi.cli._errors import CommandError
from softcvi.cli._folder import hold_folder
from softcvi.cli._main import main, make_app
from softcvi.cli._terminal import say

__all__ = [
    "CommandError",
    "Common",
    "Computing",
    "Flag",
    "hold_folder",
    "main",
    "make_app",
    "say",
]
