"""Several containers, each in a process of its own, as one: one start, one log view, one end.

Theory of operation. The children are in sessions of their own, so that Ctrl-C reaches this process
alone, which then asks each of them to stop. Their first line on stdout says that they listen; what
they write besides goes to stderr, with their names before it. One that ends by itself is reported,
and the others go on: what a mesh does then is what people want to see.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.process.children import COMMAND, code_of_child, in_words, lines
from cogwork.cli.process.log_lines import say

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable, Mapping, Sequence

__all__ = ("Fleet",)

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 15.0
"""A container closes what is unsettled after ten seconds by itself."""

POLL_S = 0.05
"""How often children are looked at while they start."""

COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_red")


@dataclass(slots=True, eq=False)
class _Child:
    """A container's process.

    Attributes:
        name: The container's id.
        prefix: What stands before each line of its log.
        process: The process.
        listens: Set once it listens.
        watch: Ends when the process has ended and all that it wrote is shown.
    """

    name: str
    prefix: str
    process: Process
    listens: asyncio.Event = field(default_factory=asyncio.Event)
    watch: asyncio.Task[int] = field(init=False)


class Fleet:
    """Runs containers until a signal comes, or none of them is left."""

    def __init__(self, commands: Mapping[str, Sequence[str]]) -> None:
        """Start nothing yet.

        Args:
            commands: What each container's command line says after `cogwork`, by its id.
        """
        self._commands = commands
        self._width = max(map(len, commands))
        self._children: list[_Child] = []
        self._stopping = asyncio.Event()

    async def run(self, announce: Callable[[dict[str, int]], None]) -> ExitCode:
        """Start all, and returns once all have ended.

        Args:
            announce: Called with the ids of the processes when all of them listen.

        Returns:
            OK where a signal ended them; otherwise what went wrong.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._on_signal)
        try:
            for at, (name, arguments) in enumerate(self._commands.items()):
                await self._start(at, name, arguments)
            code = await self._until_all_listen()
            if code is None:
                announce({each.name: each.process.pid for each in self._children})
                code = await self._until_told_or_alone()
        finally:
            is_clean = await self._stop()
        return code if is_clean else ExitCode.ERROR

    def _on_signal(self) -> None:
        """End the run; a second signal is passed on: containers wait no longer then."""
        if self._stopping.is_set():
            self._signal(signal.SIGTERM)
        self._stopping.set()

    # -- start

    async def _start(self, at: int, name: str, arguments: Sequence[str]) -> None:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )
        prefix = f"{name:{self._width}} │ "
        if sys.stderr.isatty():
            prefix = click.style(prefix, fg=COLOURS[at % len(COLOURS)])
        child = _Child(name, prefix, process)
        child.watch = asyncio.create_task(self._watch(child))
        self._children.append(child)

    async def _until_all_listen(self) -> ExitCode | None:
        """Wait for all; return what went wrong, or that it is over already."""
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while not all(each.listens.is_set() for each in self._children):
            ended = next((each for each in self._children if each.watch.done()), None)
            if ended is not None:
                return code_of_child(ended.watch.result())
            if time.monotonic() > deadline_s:
                say(f"cogwork: not all containers listen after {START_TIMEOUT_S:g} s")
                return ExitCode.TIMEOUT
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), POLL_S)
                return ExitCode.OK
        return None

    # -- run

    async def _until_told_or_alone(self) -> ExitCode:
        """Wait for a signal, or until no container is left."""
        watches = {each.watch for each in self._children}
        told = asyncio.create_task(self._stopping.wait(), name="told")
        while watches and not self._stopping.is_set():
            ended, _ = await asyncio.wait((told, *watches), return_when=asyncio.FIRST_COMPLETED)
            for task in watches & ended:
                task.result()
            watches -= ended
        told.cancel()
        if self._stopping.is_set():
            return ExitCode.OK
        say("cogwork: no container is left")
        return ExitCode.ERROR

    async def _watch(self, child: _Child) -> int:
        """Show what a child writes; return how it ended, after saying so where nobody asked."""
        await asyncio.gather(self._show_log(child), self._read_output(child))
        code = await child.process.wait()
        if not self._stopping.is_set():
            say(f"cogwork: container {child.name} {in_words(code)}")
        return code

    async def _show_log(self, child: _Child) -> None:
        assert child.process.stderr is not None
        async for line in lines(child.process.stderr):
            say(f"{child.prefix}{line}")

    async def _read_output(self, child: _Child) -> None:
        """Its first line says that it listens; more there is none."""
        assert child.process.stdout is not None
        async for _ in lines(child.process.stdout):
            child.listens.set()

    # -- end

    async def _stop(self) -> bool:
        """Ask all to stop, and wait for them; return whether each did."""
        self._stopping.set()
        self._signal(signal.SIGTERM)
        watches = [each.watch for each in self._children]
        if not watches:
            return True
        _, late = await asyncio.wait(watches, timeout=STOP_TIMEOUT_S)
        for child in self._children:
            if child.watch in late:
                say(f"cogwork: container {child.name} does not stop; killing it")
        if late:
            self._signal(signal.SIGKILL)
            await asyncio.wait(late)
        return not late

    def _signal(self, number: signal.Signals) -> None:
        for child in self._children:
            if child.process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    child.process.send_signal(number)
