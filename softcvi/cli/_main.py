"""``softcvi``: parse, dispatch, and turn what goes wrong into a line and a code."""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Any

import jax

import softcvi
from softcvi.cli._completion import add_completion_parser
from softcvi.cli._demo import add_demo_parser
from softcvi.cli._errors import (
    FAILURE,
    INTERRUPTED,
    OK,
    USAGE,
    CommandError,
    explain,
)
from softcvi.cli._fit import add_fit_parser
from softcvi.cli._parser import Parser
from softcvi.cli._report import add_report_parser
from softcvi.cli._terminal import quiet_libraries

_PIPE_CLOSED = 141
_EPILOG = """\
examples:
  softcvi demo                               two posteriors in about a minute
  softcvi fit model.py:model --data data.json --out fits/first
  softcvi fit model.py:model --data data.json --guide flow --out fits/flow
  softcvi report fits/* --out comparison     many fits side by side
  softcvi reproduce --help                   the paper's experiments

`softcvi COMMAND --help` says more about each. Compiled programs are kept in the
user's cache folder; --no-cache or SOFTCVI_CACHE_DIR change that. Colours go away
with NO_COLOR=1. Exit codes: 0 done, 1 failed, 2 bad input, 130 interrupted.
"""


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line.

    Example:
        >>> make_parser().parse_args(["demo", "--quiet"]).command
        'demo'
    """
    parser = Parser(
        prog="softcvi",
        description="Bayesian inference by contrastive variational inference.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action="version", version=f"softcvi {softcvi.__version__}"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for add in (
        add_demo_parser,
        add_fit_parser,
        add_report_parser,
        add_completion_parser,
        *_commands_of_other_distributions(),
    ):
        add(commands)
    for command in commands.choices.values():
        _add_common_options(command)
    return parser


def _commands_of_other_distributions() -> list[Callable]:
    """What other distributions add by the entry points ``softcvi.commands``."""
    found = sorted(entry_points(group="softcvi.commands"), key=lambda point: point.name)
    return [point.load() for point in found]


def _add_common_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("common options")
    group.add_argument(
        "--traceback", action="store_true", help="show where an error came from"
    )
    group.add_argument(
        "--no-cache", action="store_true", help="do not keep compiled programs on disk"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Arguments without the program's name; those of the process by default.

    Returns:
        0 done, 1 failed, 2 bad input, 130 interrupted.

    Example:
        >>> from softcvi.cli import main
        >>> main(["completion", "fish"]) == 0  # doctest: +ELLIPSIS
        # softcvi completion for fish...
        True
    """
    parser = make_parser()
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:
        return USAGE if stop.code not in (None, 0) else OK
    with quiet_libraries():
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    try:
        if not args.no_cache:
            softcvi.enable_compilation_cache()
        # Reference draws and metrics need all digits of a product on accelerators too.
        jax.config.update("jax_default_matmul_precision", "highest")
        code: Any = args.run(args)
        sys.stdout.flush()
        return OK if code is None else int(code)
    except KeyboardInterrupt:
        print(f"softcvi {args.command}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`softcvi ... | head`): nobody is left to be told.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    except Exception as error:
        message, code = explain(error)
        if args.traceback:
            traceback.print_exception(error)
        elif code == FAILURE and not isinstance(error, CommandError):
            message += "\nRun it again with --traceback to see where."
        print(f"softcvi {args.command}: {message}", file=sys.stderr)
        return code
