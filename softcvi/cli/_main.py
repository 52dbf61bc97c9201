"""``softcvi``: parse, dispatch, and turn what goes wrong into a line and a code."""

import inspect
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from cyclopts import App, CycloptsError, Parameter

import softcvi
from softcvi.cli._common import Common
from softcvi.cli._errors import (
    FAILURE,
    INTERRUPTED,
    OK,
    USAGE,
    CommandError,
    explain,
    usage_message,
)
from softcvi.cli._reading import keep_exit_code, no_silent_end
from softcvi.cli._terminal import clear_warnings, close_output, print_anything, tell

_PIPE_CLOSED = 141
_HELP_FLAGS = ("--help", "-h")
_EPILOG = """\
examples:
  softcvi demo                             two posteriors in about a minute
  softcvi fit model.py:model --data data.json --out fits/first
  softcvi fit model.py:model --data data.json --guide flow --out fits/flow
  softcvi report fits/* --out comparison   many fits side by side
  softcvi sweep grid.yaml --out sweep      a grid of models, guides and seeds

`softcvi COMMAND --help` says more about each. Compiled programs are kept in
the user's cache folder; --no-cache or SOFTCVI_CACHE_DIR change that. Colours
go away with NO_COLOR=1.
Exit codes: 0 done, 1 failed, 2 bad input, 130 interrupted.
"""
# Loaded when they are called: `softcvi --help` needs none of them.
_COMMANDS = {
    "demo": "Fit two posteriors with SoftCVI and with the ELBO, and write a page.",
    "fit": "Fit a NumPyro, PyMC or Stan model or a log density in a file.",
    "report": "Make an HTML page, or an index of many, from fits on disk.",
    "sweep": "Fit every combination of a grid, on one core, many or a cluster.",
    "completion": "Print a completion script for bash, zsh or fish.",
}


def make_app() -> App:
    """The whole command line.

    Other distributions add commands by entry points of the group
    ``softcvi.commands``, each of them a cyclopts ``App``.

    Example:
        >>> sorted(name for name in make_app() if name in ("demo", "fit", "report"))
        ['demo', 'fit', 'report']
    """
    app = App(
        name="softcvi",
        help="Bayesian inference by contrastive variational inference.",
        help_epilogue=_EPILOG,
        help_format="plaintext",
        version=f"softcvi {softcvi.__version__}",
        default_parameter=Parameter(negative=(), allow_repeating=True),
        result_action="return_value",
    )
    for name, text in _COMMANDS.items():
        app.command(f"softcvi.cli._{name}:app", name=name, help=text)
    for point in sorted(entry_points(group="softcvi.commands"), key=lambda p: p.name):
        app.command(_loaded(point), name=point.name)
    return app


def _loaded(point: EntryPoint) -> App:
    """A command of another distribution; one that is broken spoils no other."""
    try:
        return point.load()
    except Exception as error:
        why = f"{point.name}: cannot be loaded from {point.value} ({error})"
        app = App(name=point.name, help=why)

        @app.default
        def refuse(*words: str, common: Common = Common()) -> None:  # noqa: B008
            raise CommandError(f"{why}. Install its distribution again.", FAILURE)

        return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Arguments without the program's name; by default those of the process,
            which then ends with the code that this gives, whatever the model does.

    Returns:
        0 done, 1 failed, 2 bad input, 130 interrupted.

    Example:
        >>> from softcvi.cli import main
        >>> main(["completion", "fish"]) == 0  # doctest: +ELLIPSIS
        # Fish completion for softcvi...
        True
    """
    print_anything()
    if argv is not None:
        return _end_of(list(argv))
    try:
        return _end_of(sys.argv[1:])
    finally:
        keep_exit_code()


def _end_of(words: list[str]) -> int:
    """The exit code of a command."""
    command = "softcvi"
    try:
        app = make_app()
        command = " ".join(["softcvi", *app.parse_commands(words)[0]])
        function, bound, _ = app.parse_args(
            words, exit_on_error=False, print_error=False
        )
        if inspect.ismethod(function):
            return _show(function, bound, words, command)
        bound.apply_defaults()
        return _run(function, bound, command)
    except CycloptsError as error:
        return _refuse(command, usage_message(error, app))
    except Exception as error:
        # Settings check their values when they are made from the command line.
        return _report_error(command, error, "--traceback" in words)
    except KeyboardInterrupt:
        tell(f"{command}: interrupted")
        return INTERRUPTED


def _show(function: Any, bound: inspect.BoundArguments, words, command: str) -> int:
    """Help and version; help that was not asked for means that a command is missing."""
    asked = function.__name__ != "help_print" or any(w in _HELP_FLAGS for w in words)
    if not asked:
        return _refuse(command, "required: COMMAND")
    function(*bound.args, **bound.kwargs)
    return OK


def _refuse(command: str, message: str) -> int:
    tell(f"{command}: {message}\nsee {command} --help")
    return USAGE


def _run(function: Any, bound: inspect.BoundArguments, command: str) -> int:
    common = bound.arguments.get("common", Common())
    with clear_warnings(), no_silent_end():
        try:
            _check_here()
            common.prepare()
            code = function(*bound.args, **bound.kwargs)
            if sys.stdout is not None:  # closed by whoever started this
                sys.stdout.flush()
            return OK if code is None else int(code)
        except BrokenPipeError:
            # The reader has gone (`softcvi ... | head`): no message can reach it.
            close_output()
            return _PIPE_CLOSED
        except Exception as error:
            return _report_error(command, error, common.traceback)
        except KeyboardInterrupt:
            raise
        except BaseException as stop:
            # A command gives back its code; only a model's own code ends it so.
            ended = CommandError(f"the model ended the program ({stop!r})", FAILURE)
            return _report_error(command, ended, common.traceback)


def _check_here() -> None:
    try:
        os.getcwd()
    except OSError as error:
        raise CommandError(
            "the current folder is not there any more. Change to another one."
        ) from error


def _report_error(command: str, error: Exception, with_traceback: bool) -> int:
    message, code = explain(error)
    if with_traceback:
        traceback.print_exception(error)
    elif code == FAILURE and not isinstance(error, CommandError):
        message += "\nRun it again with --traceback to see where."
    tell(f"{command}: {message}")
    return code
