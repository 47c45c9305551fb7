"""`cogwork completion`: what a shell sources to complete commands and options."""

from __future__ import annotations

import json

import click
from click.shell_completion import get_completion_class

__all__ = ("completion",)

SHELLS = ("bash", "zsh", "fish")

VARIABLE = "_COGWORK_COMPLETE"
"""By which the shell's function has `cogwork` list words instead of running."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--json", "as_json", is_flag=True, help="Print the script as one JSON object.")
def completion(shell: str, as_json: bool) -> None:
    """Print the completion script of a shell.

    For bash: source <(cogwork completion bash), in ~/.bashrc. Commands, options and choices come
    from the command itself, so that they are those of the version that is installed.
    """
    found = get_completion_class(shell)
    assert found is not None
    from cogwork.cli.main import cogwork  # noqa: PLC0415  # it imports this module

    script = found(cogwork, {}, "cogwork", VARIABLE).source()
    click.echo(json.dumps({"shell": shell, "script": script}) if as_json else script)
