"""Groups of commands whose modules are imported when they run."""

from __future__ import annotations

import gc
import importlib
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from cogwork.cli.unknown_commands import HelpfulGroup

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

__all__ = ("Entry", "LazyGroup", "ReaderLeftError")


class Entry(NamedTuple):
    """A command that is not imported yet.

    Attributes:
        module: Has the command as a function of the command's own name.
        summary: What it does, for the list of commands.
    """

    module: str
    summary: str


class ReaderLeftError(Exception):
    """Whoever read our output has gone. By its own name click would end the process for it."""


@contextmanager
def _naming_broken_pipes() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderLeftError from error


class LazyGroup(HelpfulGroup):
    """A group whose commands are imported when they run."""

    def __init__(
        self,
        *args: Any,
        entries: Mapping[str, Entry] | None = None,
        **attributes: Any,
    ) -> None:
        """Start with its commands, none of them imported.

        Args:
            *args: As click has them.
            entries: The commands by name, in the order in which people meet them.
            **attributes: As click has them.
        """
        super().__init__(*args, **attributes)
        self._entries = entries or {}

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Read the command line; `--help` prints here."""
        with _naming_broken_pipes():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        with _naming_broken_pipes():
            return super().invoke(ctx)

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """List names in the order in which people meet them."""
        return list(self._entries)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; None is an unknown name."""
        entry = self._entries.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = getattr(_imported(entry.module), cmd_name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of commands without importing them, and options."""
        found = [
            CompletionItem(name, help=entry.summary)
            for name, entry in self._entries.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self._entries.items()])


def _imported(name: str) -> ModuleType:
    """Import a module without looking for garbage, then or ever, in what comes with it.

    Hundreds of modules come, and stay; looking takes a sixth of the time.
    """
    if name in sys.modules or not gc.isenabled():
        return importlib.import_module(name)
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.freeze()
        gc.enable()
