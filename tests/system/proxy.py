"""A TCP proxy that breaks connections on purpose."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

__all__ = ("FaultyProxy",)

CHUNK_BYTES = 65_536


class FaultyProxy:
    """Stands between a client and a container.

    Attributes:
        url: Where clients connect.
        connections: Counts those that came.
    """

    def __init__(self, target: str) -> None:
        """Initialize it; it does not listen yet.

        Args:
            target: The container's URL.
        """
        self.lead_to(target)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._replies_pass = asyncio.Event()
        self._replies_pass.set()
        self._is_refusing = False
        self._pause_s = 0.0
        self._delay_s = 0.0
        self.connections = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._on_client, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"amqp://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        await asyncio.sleep(0.01)  # transports close in the next turn

    def lead_to(self, target: str) -> None:
        """Lead those that come from now on to another container."""
        parts = urlsplit(target)
        self._host, self._port = parts.hostname, parts.port

    def cut(self) -> None:
        """Break every connection in the middle of whatever it is doing."""
        for writer in self._writers:
            writer.transport.abort()
        self._replies_pass.set()

    def hold_replies(self) -> None:
        """Let nothing come back from the container, until the next cut."""
        self._replies_pass.clear()

    def refuse(self, refuses: bool) -> None:
        """Break every new connection at once, or no longer."""
        self._is_refusing = refuses

    def slow(self, bytes_per_s: int) -> None:
        """Let no more than that through from now on, on each connection and way."""
        self._pause_s = CHUNK_BYTES / bytes_per_s

    def lengthen(self, delay_s: float) -> None:
        """Have everything take so long from now on, on each way."""
        self._delay_s = delay_s

    async def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self._is_refusing:
            writer.transport.abort()
            return
        self._tasks.add(asyncio.current_task())  # type: ignore[arg-type]  # it runs in a task
        far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        self._writers |= {writer, far_writer}
        passing = asyncio.Event()
        passing.set()
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._copy(reader, far_writer, passing))
                both.create_task(self._copy(far_reader, writer, self._replies_pass))
        finally:
            self._writers -= {writer, far_writer}

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passes: asyncio.Event
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(CHUNK_BYTES):
                await passes.wait()
                await asyncio.sleep(self._pause_s * len(data) / CHUNK_BYTES)
                if self._delay_s:
                    asyncio.get_running_loop().call_later(self._delay_s, writer.write, data)
                    continue
                writer.write(data)
                await writer.drain()
        writer.transport.abort()
