"""How far a pipeline is: bars on a terminal, plain lines otherwise; all on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from cogwork.sync.closing import Closing

if TYPE_CHECKING:
    from rich.progress import TaskID

    from cogwork.pipeline.archive.notice import Notice

__all__ = ("Bars",)


class Bars(Closing):
    """A bar for each stream."""

    def __init__(self, *, quiet: bool = False, screen: Console | None = None) -> None:
        """Show nothing yet.

        Args:
            quiet: Whether only bars are shown, and no lines.
            screen: Where; stderr if not given.
        """
        self._screen = screen or Console(stderr=True)
        self._quiet = quiet
        self._tasks: dict[str, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self._screen,
            transient=True,
            disable=not self._screen.is_terminal,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return super().__enter__()

    def close(self) -> None:
        """Take the bars away."""
        self._progress.stop()

    @property
    def is_drawn(self) -> bool:
        """Whether there is a terminal for bars."""
        return self._screen.is_terminal

    def say(self, text: str) -> None:
        """Print a line of the command's output."""
        if self._screen.is_terminal:
            self._progress.console.print(Text(text), highlight=False)
        else:
            click.echo(text)

    def warn(self, text: str) -> None:
        """Print a line about something that is not as it should be."""
        self._progress.console.print(Text(f"cogwork: {text}"), highlight=False)

    def advance(self, name: str, done: int, total: int) -> None:
        """Show how much of something is done."""
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total)
        self._progress.update(self._tasks[name], completed=done, total=total)

    def on_notice(self, notice: Notice) -> None:
        """Is told by an archiver what it does."""
        name = f"stream/{notice.stream}"
        if notice.step == "opened":
            self._begun = (notice.start, notice.end)
            if notice.end > notice.start:
                self.advance(name, 0, notice.end - notice.start)
        elif notice.step == "committed":
            start, end = self._begun
            self.advance(name, notice.end - start, end - start)
            if not (self._quiet or self._screen.is_terminal):
                self.warn(f"{name}: {notice.end - start:,} of {end - start:,} records archived")
        elif notice.step == "lost":
            span = f"records {notice.start} to {notice.end - 1}"
            self.warn(f"{name} has deleted {span} before they were archived")
        elif notice.step == "compacted" and not self._quiet:
            self.warn(f"{name}: merged {notice.items} small files into one")

    _begun = (0, 0)
