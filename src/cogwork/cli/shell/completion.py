"""Completion of commands, options and names; names are those of the live container."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, Final

import click
from prompt_toolkit.completion import Completer, Completion

from cogwork.amqp.errors import CogworkError
from cogwork.cli.management.manager import Manager
from cogwork.cli.management.reach import reach
from cogwork.cli.shell.command_lines import URL, find, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from cogwork.cli.shell.command_lines import Found
    from cogwork.client import Client

__all__ = ("LiveNames", "ShellCompleter")

NAMES: Final = {
    "queue": ("queue",),
    "stream": ("stream",),
    "exchange": ("exchange",),
    "connection": ("connection",),
    "user": ("org.cogwork.user",),
    "vhost": ("org.cogwork.vhost",),
    "link": ("org.cogwork.link",),
}
"""By the first word of a command, the types of entities that its arguments name."""

ADDRESSES: Final = ("address", "source", "target", "destination", "topic")
"""Arguments that are addresses, whatever the command."""

ADDRESS_TYPES: Final = ("queue", "stream", "address")

ATTRIBUTE: Final = {"exchange": "exchange", "org.cogwork.link": "url"}
"""What names an entity of a type, where that is not `name`."""

FRESH_S = 5.0
"""So long names are taken for those that there are."""

NAMES_MAX = 500

SUMMARY_MAX = 80
"""Characters of what a command is said to do."""


class LiveNames:
    """The names of a container's entities, asked for when they are needed, and kept for a while."""

    def __init__(self, url: str) -> None:
        """Know of none yet.

        Args:
            url: The container's.
        """
        self._url = url
        self._context = click.get_current_context(silent=True)
        self._known: dict[str, tuple[float, list[str]]] = {}

    def of(self, kind: str) -> list[str]:
        """List the names of a type of entity; none if the container does not answer."""
        since_s, names = self._known.get(kind, (-FRESH_S, []))
        if time.monotonic() - since_s < FRESH_S:
            return names
        try:
            names = self._asked(kind)
        except (CogworkError, OSError, TimeoutError):
            names = []
        self._known[kind] = time.monotonic(), names
        return names

    def _asked(self, kind: str) -> list[str]:
        attribute = ATTRIBUTE.get(kind, "name")

        async def work(client: Client) -> list[str]:
            rows, _ = await Manager(client).rows(kind, (attribute,), NAMES_MAX)
            return sorted(str(row[attribute]) for row in rows if row.get(attribute))

        if self._context is None:
            return reach(self._url, work)
        with self._context.scope(cleanup=False):  # which has the certificates, and is a thread's
            return reach(self._url, work)


class ShellCompleter(Completer):
    """Completes a line of the shell."""

    def __init__(
        self, root: click.Command, own: Sequence[str], names_of: Callable[[str], Iterable[str]]
    ) -> None:
        """Initialize it.

        Args:
            root: The command line's.
            own: The shell's own commands.
            names_of: Lists the names of a type of entity.
        """
        self._root = root
        self._own = own
        self._names_of = names_of

    def get_completions(
        self, document: Document, _complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """Yield what the word before the cursor may become."""
        text = document.text_before_cursor
        begun = "" if text[-1:].isspace() else text.split()[-1] if text.split() else ""
        try:
            words = split(text[: len(text) - len(begun)])
        except click.UsageError:
            return
        for word, meaning in self._words_after(words, begun):
            if word.startswith(begun):
                shown = word if word.startswith("-") else shlex.quote(word)
                yield Completion(shown, -len(begun), display=word, display_meta=meaning)

    def _words_after(self, words: list[str], begun: str) -> Iterator[tuple[str, str]]:
        """Yield what may follow words, each with what it means."""
        if words[:1] in (["watch"], ["help"]):
            words = words[1:]
        elif not words:
            yield from ((name, "") for name in self._own)
        found = find(self._root, words)
        if isinstance(found.command, click.Group):
            yield from () if found.rest else _commands_of(found.command)
        elif begun.startswith("-"):
            yield from _options_of(found.command)
        else:
            yield from self._values_after(found)

    def _values_after(self, found: Found) -> Iterator[tuple[str, str]]:
        """Yield values of the option that the words end with, or of the next argument."""
        option = _option_at_end(found)
        if option is not None:
            if isinstance(option.type, click.Choice):
                yield from ((str(each), "") for each in option.type.choices)
            return
        arguments = [
            each
            for each in found.command.params
            if isinstance(each, click.Argument) and each.name != URL
        ]
        at = len(_positional(found))
        if at < len(arguments):
            for kind in _kinds_of(found.path[0], arguments[at].name or ""):
                yield from ((name, kind.rpartition(".")[2]) for name in self._names_of(kind))


def _kinds_of(command: str, argument: str) -> Sequence[str]:
    """Return the types of entities that an argument names."""
    if command in NAMES and argument in ("address", "name", "id_", "source"):
        return NAMES[command]
    return ADDRESS_TYPES if argument in ADDRESSES else ()


def _commands_of(group: click.Group) -> Iterator[tuple[str, str]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield name, "" if command is None else command.get_short_help_str(SUMMARY_MAX)


def _options_of(command: click.Command) -> Iterator[tuple[str, str]]:
    for each in command.params:
        if isinstance(each, click.Option) and not each.hidden:
            yield each.opts[0], each.help or ""


def _option_at_end(found: Found) -> click.Option | None:
    """Return the option that words end with and whose value comes next."""
    for each in found.command.params:
        takes_value = isinstance(each, click.Option) and not each.is_flag
        if takes_value and found.rest and found.rest[-1] in each.opts:
            assert isinstance(each, click.Option)
            return each
    return None


def _positional(found: Found) -> list[str]:
    """Return the arguments among the words: neither options nor their values."""
    valued = {
        name
        for each in found.command.params
        if isinstance(each, click.Option) and not each.is_flag
        for name in each.opts
    }
    rest = found.rest
    return [
        word
        for at, word in enumerate(rest)
        if not word.startswith("-") and not (at and rest[at - 1] in valued)
    ]
