"""Runs the workers of a container: starts them, passes signals on, and starts again what dies.

Theory of operation. A worker is a child that says in one line on stdout that it listens, and stops
when its stdin ends: so none outlives the supervisor, however that goes. The first one starts alone.
What is wrong with the configuration, all of them would say; and it is worker 0 that knows the
containers elsewhere, of which the others learn from it. Logs go straight to stderr.

Before all listen, one that ends takes the others with it. From then on it is started again, at once
at first, and after growing pauses where it keeps dying; but not one that has left its mesh for
good, as it was asked to. Where all have, it is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.process.children import LEFT, code_of_child, in_words, lines

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable, Mapping, Sequence

__all__ = ("Supervisor", "Timing", "WorkerProcess")

STOPPING = (signal.SIGTERM, signal.SIGINT)
PASSED_ON = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)

log = logging.getLogger("cogwork")


@dataclass(frozen=True, slots=True)
class Timing:
    """How patient a supervisor is.

    Attributes:
        start_s: How long workers may take until they listen, at the start.
        stop_s: How long they may take to stop before they are killed.
        pause_s: Before one that died is started again, at first; each pause is twice the last.
        pause_max_s: The longest pause.
        settled_s: One that has lived for so long begins with the first pause again.
    """

    start_s: float = 30.0
    stop_s: float = 15.0
    pause_s: float = 0.1
    pause_max_s: float = 10.0
    settled_s: float = 10.0


@dataclass(slots=True, eq=False)
class WorkerProcess:
    """A worker, over all its lives.

    Attributes:
        id: The container's id.
        command: What starts it.
        inherits: File descriptors that it gets.
        process: Its process; None before the first, and between two.
        said: The line with which it said that it listens; empty before.
        listens: Set once it has.
        keeper: Ends when the worker is not to be started again, with its last exit code, or None
            where it was not running.
    """

    id: str
    command: Sequence[str]
    inherits: Sequence[int] = ()
    process: Process | None = None
    said: str = ""
    listens: asyncio.Event = field(default_factory=asyncio.Event)
    keeper: asyncio.Task[int | None] = field(init=False)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, where there is a process."""
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)

    async def live(self, stopping: asyncio.Event) -> int:
        """Start it, and wait until it has ended.

        Args:
            stopping: Set where it is to end again: it may be set while the process is made.

        Returns:
            Its exit code.
        """
        pipe = asyncio.subprocess.PIPE
        # In a session of its own: Ctrl-C at a terminal reaches the supervisor alone.
        self.process = await asyncio.create_subprocess_exec(
            *self.command,
            stdin=pipe,
            stdout=pipe,
            pass_fds=self.inherits,
            start_new_session=True,
        )
        if stopping.is_set():
            self.signal(signal.SIGTERM)
        assert self.process.stdout is not None
        async for line in lines(self.process.stdout):
            self.said = line
            self.listens.set()
        code = await self.process.wait()
        self.listens.clear()
        return code


class Supervisor:
    """Runs workers until a signal stops them. Owned by its event loop."""

    def __init__(
        self,
        commands: Mapping[str, Sequence[str]],
        timing: Timing | None = None,
        inherits: Sequence[int] = (),
    ) -> None:
        """Start nothing yet.

        Args:
            commands: What starts each worker, by its id; the first one starts first.
            timing: How patient it is.
            inherits: File descriptors that all of them get.
        """
        self.workers = [
            WorkerProcess(name, command, inherits) for name, command in commands.items()
        ]
        self._timing = timing or Timing()
        self._stopping = asyncio.Event()
        self._is_up = False
        self._left = 0

    async def run(self, announce: Callable[[list[WorkerProcess]], None]) -> ExitCode:
        """Start all, and returns once all have ended.

        Args:
            announce: Called when all of them listen.

        Returns:
            OK where a signal ended them and each stopped by itself; otherwise what went wrong.
        """
        loop = asyncio.get_running_loop()
        for number in STOPPING:
            loop.add_signal_handler(number, self.stop)
        for number in PASSED_ON:
            loop.add_signal_handler(number, self._pass_on, number)
        started: list[WorkerProcess] = []
        try:
            code = await self._start(started)
            if code is None:
                self._is_up = True
                announce(self.workers)
                await self._stopping.wait()
                code = ExitCode.OK
        finally:
            is_clean = await self._end(started)
        return code if is_clean or code is not ExitCode.OK else ExitCode.ERROR

    def stop(self) -> None:
        """Have all stop; once more, and they wait for no settlements."""
        self._stopping.set()
        for worker in self.workers:
            worker.signal(signal.SIGTERM)

    def _pass_on(self, number: signal.Signals) -> None:
        """Pass a signal on to those that listen: one that has just started would die of it."""
        for worker in self.workers:
            if worker.listens.is_set():
                worker.signal(number)

    # -- start

    async def _start(self, started: list[WorkerProcess]) -> ExitCode | None:
        """Start the first, then the others; return what went wrong, or that it is over."""
        for group in (self.workers[:1], self.workers[1:]):
            for worker in group:
                worker.keeper = asyncio.create_task(self._keep(worker), name=worker.id)
                started.append(worker)
            code = await self._until_all_listen(group, started)
            if code is not None:
                return code
        return None

    async def _until_all_listen(
        self, group: Sequence[WorkerProcess], started: Sequence[WorkerProcess]
    ) -> ExitCode | None:
        told = asyncio.create_task(self._stopping.wait())
        listening = asyncio.create_task(_all_listen(group))
        waited: list[asyncio.Task[Any]] = [told, listening, *(each.keeper for each in started)]
        await asyncio.wait(
            waited, timeout=self._timing.start_s, return_when=asyncio.FIRST_COMPLETED
        )
        all_listen = listening.done()
        told.cancel()
        listening.cancel()
        if self._stopping.is_set():
            return ExitCode.OK
        ended = next((worker for worker in started if worker.keeper.done()), None)
        if ended is not None:
            return _failure(ended)
        if all_listen:
            return None
        click.echo(f"cogwork: not all workers listen after {self._timing.start_s:g} s", err=True)
        return ExitCode.TIMEOUT

    async def _keep(self, worker: WorkerProcess) -> int | None:
        """Have a worker live again and again; return the last exit code."""
        loop = asyncio.get_running_loop()
        pause_s = self._timing.pause_s
        while True:
            started_s = loop.time()
            code = await worker.live(self._stopping)
            if self._stopping.is_set() or not self._is_up:
                return code
            if code == LEFT:
                self._note_left(worker)
                return None
            if loop.time() - started_s >= self._timing.settled_s:
                pause_s = self._timing.pause_s
            how = in_words(code)
            log.warning("worker %s %s; restarting it in %g s", worker.id, how, pause_s)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)
                return None
            pause_s = min(2 * pause_s, self._timing.pause_max_s)

    def _note_left(self, worker: WorkerProcess) -> None:
        """Go on without a worker, or end with the last one."""
        log.info("worker %s has left the mesh permanently", worker.id)
        self._left += 1
        if self._left == len(self.workers):
            self._stopping.set()

    # -- end

    async def _end(self, started: Sequence[WorkerProcess]) -> bool:
        """Ask all to stop, and wait for them; return whether each did."""
        if not self._stopping.is_set():
            self.stop()
        keepers = [worker.keeper for worker in started]
        if not keepers:
            return True
        _, late = await asyncio.wait(keepers, timeout=self._timing.stop_s)
        for worker in started:
            if worker.keeper in late:
                click.echo(f"cogwork: worker {worker.id} does not stop; killing it", err=True)
                worker.signal(signal.SIGKILL)
        if late:
            await asyncio.wait(late)
        # One that has not installed its handlers yet ends by the signal itself.
        return all(each.result() in (None, 0, LEFT, -signal.SIGTERM) for each in keepers)


async def _all_listen(workers: Sequence[WorkerProcess]) -> None:
    for worker in workers:
        await worker.listens.wait()


def _failure(worker: WorkerProcess) -> ExitCode:
    """Return why a worker did not start, where it has not said so itself."""
    code = worker.keeper.result()
    if code is None or code <= 0:
        click.echo(f"cogwork: worker {worker.id} {in_words(code or 0)}", err=True)
    return code_of_child(code or 0)
