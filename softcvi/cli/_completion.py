"""``softcvi completion``: what the shell needs to complete commands and options."""

import argparse

from softcvi.cli._terminal import say

_EPILOG = """\
examples:
  bash  softcvi completion bash > ~/.local/share/bash-completion/completions/softcvi
  zsh   softcvi completion zsh > "${fpath[1]}/_softcvi"
  fish  softcvi completion fish > ~/.config/fish/completions/softcvi.fish
"""


def add_completion_parser(commands) -> None:
    """Add the command.

    Args:
        commands: What ``add_subparsers`` returned.

    Example:
        >>> parser = argparse.ArgumentParser()
        >>> add_completion_parser(parser.add_subparsers())
        >>> parser.parse_args(["completion", "zsh"]).shell
        'zsh'
    """
    parser = commands.add_parser(
        "completion",
        help="print a completion script for bash, zsh or fish",
        description="Print a completion script for a shell.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=sorted(_WRITERS), help="which shell")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    from softcvi.cli._main import make_parser

    say(_WRITERS[args.shell](_commands(make_parser())))


Options = list[tuple[str, str, list[str]]]  # flag, help, choices


def _commands(parser: argparse.ArgumentParser) -> dict[str, tuple[str, Options, list]]:
    """Help, options and positional choices of every command."""
    subparsers = next(
        action
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    helps = {a.dest: a.help or "" for a in subparsers._choices_actions}
    found = {}
    for name, command in subparsers.choices.items():
        options = [
            (flag, (a.help or "").replace("%%", "%"), [str(c) for c in a.choices or ()])
            for a in command._actions
            for flag in a.option_strings
            if flag.startswith("--") and a.help != argparse.SUPPRESS
        ]
        words = [
            str(choice)
            for a in command._actions
            if not a.option_strings
            for choice in a.choices or ()
        ]
        found[name] = (helps.get(name, ""), options, words)
    return found


def _bash(commands: dict) -> str:
    cases = []
    for name, (_, options, words) in commands.items():
        flags = " ".join([flag for flag, _, _ in options] + words)
        values = "".join(
            f'        {flag}) COMPREPLY=($(compgen -W "{" ".join(choices)}"'
            ' -- "$cur")); return;;\n'
            for flag, _, choices in options
            if choices
        )
        inner = f'      case "$prev" in\n{values}      esac\n' if values else ""
        cases.append(f'    {name})\n{inner}      words="{flags}";;\n')
    return f"""\
# softcvi completion for bash
_softcvi() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}"
  local words="{" ".join(commands)} --help --version"
  if [ "$COMP_CWORD" -gt 1 ]; then
    case "${{COMP_WORDS[1]}}" in
{"".join(cases)}    esac
  fi
  case "$cur" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$cur"));;
    *) COMPREPLY=($(compgen -W "$words" -- "$cur") $(compgen -f -- "$cur"));;
  esac
}}
complete -o filenames -F _softcvi softcvi"""


def _zsh(commands: dict) -> str:
    described = " ".join(f"'{n}:{_plain(h)}'" for n, (h, _, _) in commands.items())
    cases = []
    for name, (_, options, words) in commands.items():
        specs = [
            f"'{flag}[{_plain(text)}]"
            + (f":value:({' '.join(choices)})'" if choices else "'")
            for flag, text, choices in options
        ]
        rest = f"'*:word:({' '.join(words)})'" if words else "'*:file:_files'"
        cases.append(f"    {name}) _arguments {' '.join([*specs, rest])};;\n")
    return f"""\
#compdef softcvi
# softcvi completion for zsh
_softcvi() {{
  local -a commands
  commands=({described})
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  shift words; (( CURRENT-- ))
  case "$words[1]" in
{"".join(cases)}  esac
}}
_softcvi "$@\""""


def _fish(commands: dict) -> str:
    lines = ["# softcvi completion for fish"]
    for name, (text, options, words) in commands.items():
        lines.append(
            "complete -c softcvi -n __fish_use_subcommand "
            f"-a {name} -d '{_plain(text)}'"
        )
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        for flag, option_text, choices in options:
            takes = f" -x -a '{' '.join(choices)}'" if choices else ""
            lines.append(
                f"complete -c softcvi {seen} -l {flag[2:]}{takes} "
                f"-d '{_plain(option_text)}'"
            )
        if words:
            lines.append(f"complete -c softcvi {seen} -f -a '{' '.join(words)}'")
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Help text without what shells would read as syntax."""
    return "".join(c for c in text if c not in "'[]`\\\"$").replace(":", ",")


_WRITERS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
