"""``softcvi completion``: what the shell needs to complete commands and options."""

from typing import Annotated, Literal

from cyclopts import App, Parameter

from softcvi.cli._common import Common
from softcvi.cli._terminal import say

app = App(
    name="completion",
    help="Print a completion script for bash, zsh or fish.",
    help_epilogue="""\
examples:
  bash  softcvi completion bash > ~/.local/share/bash-completion/completions/softcvi
  zsh   softcvi completion zsh > "${fpath[1]}/_softcvi"
  fish  softcvi completion fish > ~/.config/fish/completions/softcvi.fish
""",
)


@app.default
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="Which shell.")],
    /,
    *,
    common: Common = Common(),  # noqa: B008
) -> None:
    """Print a completion script for a shell."""
    from softcvi.cli._main import make_app

    say(make_app().generate_completion(prog_name="softcvi", shell=shell))
