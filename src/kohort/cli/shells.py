"""What shells are given to complete commands: click's scripts, and what is missing of them."""

from __future__ import annotations

import click
from click.shell_completion import ZshComplete, get_completion_class

_REGISTERED = "    compdef "
# A zsh without a configuration has not loaded what completes; kubectl's users know the error by heart.
_LOADED = "    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }\n"


def script(app: click.Command, program: str, shell: str) -> str:
    """For `source`. `program`: the name that is typed."""
    made = get_completion_class(shell)
    assert made is not None, shell
    text = made(app, {}, program, f"_{program.replace('-', '_').upper()}_COMPLETE").source()
    return text.replace(_REGISTERED, _LOADED + _REGISTERED) if made is ZshComplete else text
