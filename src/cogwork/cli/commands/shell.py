"""`cogwork shell`: an interactive console of one container."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from cogwork.cli.management.reach import reach
from cogwork.cli.options.certificates import certified, given_files
from cogwork.cli.options.passwords import with_password
from cogwork.cli.options.single_url import single_url
from cogwork.cli.options.tokens import given_token_file
from cogwork.cli.shell.session import (
    OWN,
    Session,
    lines_of_prompt,
    lines_of_stdin,
    prompt_session,
)

if TYPE_CHECKING:
    from cogwork.client import Client

__all__ = ("shell",)


@click.command()
@click.argument("url", callback=single_url)
@click.option(
    "--command",
    "-c",
    "commands",
    multiple=True,
    metavar="LINE",
    help="Line to run instead of reading lines; repeatable.",
)
@certified
def shell(url: str, commands: tuple[str, ...]) -> int:
    """Run commands at one container without writing its URL.

    Every command of the command line works, without URL: `queue list`, `send queue/jobs hello`.
    Tab completes commands, options, and the names of the container's queues, streams, exchanges
    and connections. `watch [SECONDS] COMMAND` repeats a command, `help` lists them, Ctrl-D ends
    the shell. Without a terminal, lines come from stdin; the exit code is that of the last one.
    """
    from cogwork.cli.main import cogwork, run  # noqa: PLC0415  # which imports this module

    container = reach(url, _container_of)
    given = (with_password(url), *given_files(), *given_token_file())
    session = Session(cogwork, run, given)
    if commands:
        lines = iter(commands)
    elif sys.stdin.isatty():
        if find_spec("prompt_toolkit") is None:
            raise click.UsageError("prompt_toolkit is missing: pip install 'cogwork[shell]'")
        from cogwork.cli.shell.completion import (  # noqa: PLC0415  # needs prompt_toolkit
            LiveNames,
            ShellCompleter,
        )

        completer = ShellCompleter(cogwork, OWN, LiveNames(url).of)
        lines = lines_of_prompt(prompt_session(completer), f"{container}> ")
    else:
        lines = lines_of_stdin()
    for line in lines:
        session.take(line)
        if session.is_over:
            break
    return session.code


async def _container_of(client: Client) -> str:
    return client.container.container_id
