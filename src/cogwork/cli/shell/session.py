"""A session of the shell: reads lines, and runs what they say until there are no more."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.shell.command_lines import command_line_of, find, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prompt_toolkit import PromptSession

__all__ = ("OWN", "Session", "lines_of_prompt", "lines_of_stdin", "prompt_session")

OWN: Final = ("help", "watch", "exit", "quit")
"""Commands of the shell itself."""

WATCH_EVERY_S = 2.0

HISTORY_MODE = 0o600


class Session:
    """Runs lines at one container.

    Attributes:
        code: The exit code of the last command.
        is_over: Whether it was asked to end.
    """

    def __init__(
        self, root: click.Command, run: Callable[[Sequence[str]], int], given: Sequence[str]
    ) -> None:
        """Initialize it.

        Args:
            root: The command line's commands.
            run: Runs a command line, says what is wrong with it, and returns its exit code.
            given: The URL, and options for all commands that connect.
        """
        self._root = root
        self._run = run
        self._given = given
        self.code: int = ExitCode.OK
        self.is_over = False

    def take(self, line: str) -> None:
        """Run a line."""
        try:
            words = split(line)
        except click.UsageError as error:
            self._refuse(error.message)
            return
        match words:
            case []:
                return
            case ["exit" | "quit"]:
                self.is_over = True
            case ["help", *rest]:
                self._help(rest)
            case ["watch", *rest]:
                self._watch(rest)
            case _:
                self._take(words)

    def _take(self, words: Sequence[str]) -> None:
        self.code = self._run(command_line_of(self._root, words, self._given))

    def _help(self, words: list[str]) -> None:
        self.code = self._run([*find(self._root, words).path, "--help"])
        if not words:
            click.echo(
                "\nThe shell has, besides: help [COMMAND], watch [SECONDS] COMMAND, exit. It puts "
                "URL into commands."
            )

    def _watch(self, words: list[str]) -> None:
        """Run a command again and again, until Ctrl-C."""
        every_s = WATCH_EVERY_S
        if words and words[0].replace(".", "", 1).isdigit():
            every_s = float(words.pop(0))
        if not words:
            self._refuse("watch needs a command (expected watch [SECONDS] COMMAND)")
            return
        self.code = ExitCode.OK
        try:
            while self.code == ExitCode.OK:
                click.clear()
                self._take(words)
                time.sleep(every_s)
        except KeyboardInterrupt:
            self.code = ExitCode.INTERRUPTED

    def _refuse(self, text: str) -> None:
        click.echo(f"cogwork: {text}", err=True)
        self.code = ExitCode.USAGE


def lines_of_stdin() -> Iterator[str]:
    """Yield the lines of a script."""
    for line in sys.stdin:
        yield line.rstrip("\n")


def lines_of_prompt(prompt: PromptSession[str], text: str) -> Iterator[str]:
    """Yield what a person enters, until Ctrl-D; Ctrl-C drops the line."""
    while True:
        try:
            yield prompt.prompt(text)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def prompt_session(completer: object) -> PromptSession[str]:
    """Make what reads lines from a terminal, with history and completion."""
    from prompt_toolkit import PromptSession  # noqa: PLC0415  # an extra, needed by a terminal alone
    from prompt_toolkit.completion import Completer  # noqa: PLC0415  # likewise
    from prompt_toolkit.history import FileHistory  # noqa: PLC0415  # likewise

    assert isinstance(completer, Completer)
    return PromptSession(
        history=FileHistory(str(_history_file())),
        completer=completer,
        complete_in_thread=True,
        complete_while_typing=False,
    )


def _history_file() -> Path:
    """Return where lines are kept, for their owner alone."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    file = state / "cogwork" / "history"
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.touch(mode=HISTORY_MODE)
    return file
