"""The container's readers: started with it, and again when they die."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import subprocess
from typing import TYPE_CHECKING

import msgspec

from cogwork.amqp.types import UShort
from cogwork.io.listener import reserved_socket
from cogwork.io.time_slice import set_time_slice
from cogwork.pipeline.arrow.serving.desk import Desk
from cogwork.pipeline.arrow.serving.frames import Frames
from cogwork.pipeline.arrow.serving.job import OFFERED, ReaderJob, place_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.container.container import Container

__all__ = ("Crew",)

PAUSE_FIRST_S, PAUSE_LONGEST_S = 0.1, 5.0
SETTLED_S = 10.0
STOP_S = 2.0
LOOK_S = 0.02

SLICE_US = 100
"""The container's slices of the processor, so that it is let in when readers are at work."""

log = logging.getLogger("cogwork")


class Crew:
    """Keeps the readers of one container alive. Owned by whoever runs the container."""

    def __init__(self, container: Container, command: Sequence[str], number: int = 0) -> None:
        """Start nothing yet.

        Args:
            container: Whose readers they are.
            command: What starts one; what it is told comes behind.
            number: Of the worker that the container is, where there are several.
        """
        self._container = container
        self._command = list(command)
        self._number = number
        self._reserved: list[socket.socket] = []
        self._ports: dict[str, int] = {}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._keepers: list[asyncio.Task[None]] = []

    @property
    def process_ids(self) -> list[int]:
        """Those of the readers that live."""
        return [process.pid for process in self._processes.values()]

    def start(self) -> None:
        """Take the ports, and have the readers started.

        Raises:
            ListenError: A port is taken.
        """
        set_time_slice(SLICE_US)
        configuration = self._container.configuration
        listeners, first = configuration.at_ports, configuration.arrow.port
        first += self._number * len(listeners) if first else 0
        for at, listen in enumerate(listeners):
            port = first + at if first else 0
            # Held until the end: the port stays theirs while one that died is not back yet.
            self._reserved.append(reserved_socket(listen.host, port))
            self._ports[place_of(listen)] = self._reserved[-1].getsockname()[1]
        for number in range(configuration.arrow.readers):
            self._keepers.append(asyncio.get_running_loop().create_task(self._keep(number)))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all."""
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)

    async def close(self) -> None:
        """End them."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        self.signal(signal.SIGTERM)
        for process in list(self._processes.values()):
            await _ended(process)
        self._processes.clear()
        for sock in self._reserved:
            sock.close()

    async def _keep(self, number: int) -> None:
        """Have a reader live again and again."""
        loop = asyncio.get_running_loop()
        pause_s = PAUSE_FIRST_S
        while True:
            started_s = loop.time()
            try:
                code = await self._live(number)
            except OSError as error:
                log.warning("cannot start a reader process: %s", error)
            else:
                log.warning("reader process %d exited with code %d; restarting it", number, code)
            if loop.time() - started_s >= SETTLED_S:
                pause_s = PAUSE_FIRST_S
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_LONGEST_S)

    async def _live(self, number: int) -> int:
        """Start a reader, and answer it until it has ended; return its exit code."""
        ours, its = socket.socketpair()
        frames = Frames(ours)
        try:
            with its:
                job = ReaderJob(self._container.id, number, its.fileno(), self._ports)
                told = msgspec.json.encode(job).decode()
                # In a session of its own: Ctrl-C at a terminal reaches the container alone.
                process = subprocess.Popen(
                    [*self._command, told],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=(its.fileno(),),
                    start_new_session=True,
                )
            self._processes[number] = process
            await Desk(self._container.vhosts, frames, self._offer, self._counts).run()
        finally:
            frames.close()
        code = await _ended(process)
        del self._processes[number]
        return code

    def _counts(self) -> tuple[int, int, int]:
        """Return how many frames and connections the container has taken, and its links."""
        container = self._container
        return container.core.frames_in, container.peers.accepted, len(container.mesh.peer_links)

    def _offer(self) -> None:
        """Tell clients where readers are, once there is one."""
        listeners = self._container.configuration.at_ports
        ports = {listen.transport: UShort(self._ports[place_of(listen)]) for listen in listeners}
        self._container.peers.offer(OFFERED, ports)


async def _ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process that is to end, and kill it where it does not."""
    until_s = asyncio.get_running_loop().time() + STOP_S
    while (code := process.poll()) is None:
        if asyncio.get_running_loop().time() > until_s:
            process.kill()
        await asyncio.sleep(LOOK_S)
    return code
