"""What a line of the shell says on a command line: the URL and certificates are put into it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("Found", "command_line_of", "find", "split")

URL = "url"
"""The parameter that the shell fills in."""


class Found(NamedTuple):
    """The command that words name.

    Attributes:
        command: The command, or the group that the words end in.
        path: The words that name it.
        rest: The words that follow.
    """

    command: click.Command
    path: list[str]
    rest: list[str]

    @property
    def url_flag(self) -> list[str] | None:
        """What stands before the URL: nothing or an option; None if the command has no URL."""
        for each in self.command.params:
            if each.name == URL:
                return [] if isinstance(each, click.Argument) else [each.opts[0]]
        return None


def split(line: str) -> list[str]:
    """Split a line into words, as a shell does.

    Raises:
        click.UsageError: A quotation does not end.
    """
    try:
        return shlex.split(line, comments=True)
    except ValueError as error:
        raise click.UsageError(f"{error} in {line!r:.200} (expected a pair of quotes)") from error


def find(root: click.Command, words: Sequence[str]) -> Found:
    """Find the command that words begin with, as far as they name one."""
    command, at = root, 0
    while isinstance(command, click.Group) and at < len(words):
        below = command.get_command(click.Context(command), words[at])
        if below is None:
            break
        command, at = below, at + 1
    return Found(command, list(words[:at]), list(words[at:]))


def command_line_of(root: click.Command, words: Sequence[str], given: Sequence[str]) -> list[str]:
    """Return what stands on a command line for words of the shell.

    Args:
        root: The command line's.
        words: Of the shell.
        given: The URL, and options for all commands that connect: `--ca-file`, its value, ….

    Returns:
        The same words, with the URL where the command has it, unless they begin with one.
    """
    found = find(root, words)
    flag = found.url_flag
    if flag is None or "://" in "".join(found.rest[:1]) or (flag and flag[0] in found.rest):
        return list(words)
    known = {name for each in found.command.params for name in each.opts}
    url, *options = given
    pairs = zip(options[::2], options[1::2], strict=True)
    taken = [word for name, value in pairs if name in known for word in (name, value)]
    return [*found.path, *taken, *flag, url, *found.rest]
