"""How much of a layered stream is read at a time, by what that takes and by what it answers."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from wires import Broker

from cogwork.dataplane.connection import Connection
from cogwork.dataplane.connection_settings import ConnectionSettings
from cogwork.io.pump import BACKLOG_MAX_BYTES, READ_BYTES, READ_MIN_BYTES, StreamPump

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cogwork.io.stream import Chunk


class Layer:
    """A layer that opens nothing: it takes a while for each read, and says something to each."""

    ready = True
    peer_closed = False

    def __init__(self, pause_s: float = 0.0, answer: bytes = b"") -> None:
        self.pause_s = pause_s
        self.answer = answer
        self.reads: list[int] = []

    def feed(self, data: Chunk) -> bytes:
        self.reads.append(len(data))
        time.sleep(self.pause_s)
        return b""

    def send(self, data: Chunk) -> None:
        del data

    def take_output(self) -> bytes:
        return self.answer if self.reads else b""

    def close(self) -> None:
        """Have nothing to say."""


@asynccontextmanager
async def pumped(layer: Layer) -> AsyncIterator[socket.socket]:
    """Pump what the yielded socket sends into a layer."""
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    broker = Broker()
    connection = Connection(broker.core, broker, ConnectionSettings())
    StreamPump(connection, far, layer, bytearray(READ_BYTES))
    try:
        yield near
    finally:
        near.close()
        await asyncio.sleep(0.01)
        far.close()


async def send(near: socket.socket, size_bytes: int) -> None:
    await asyncio.get_running_loop().sock_sendall(near, bytes(size_bytes))


def test_reads_are_small_at_first_and_while_they_take_long() -> None:
    async def story() -> None:
        layer = Layer()
        async with pumped(layer) as near:
            await send(near, 2 << 20)
            await asyncio.sleep(0.01)
            assert layer.reads[0] == READ_MIN_BYTES
            assert max(layer.reads) > 8 * READ_MIN_BYTES
            layer.pause_s = 0.006
            await send(near, 1 << 20)
            await asyncio.sleep(0.01)
            assert layer.reads[-2] == READ_MIN_BYTES

    asyncio.run(asyncio.wait_for(story(), 30))


def test_who_takes_no_answers_is_not_read_until_it_does() -> None:
    async def story() -> None:
        layer = Layer(answer=bytes(READ_MIN_BYTES))
        async with pumped(layer) as near:
            sending = asyncio.create_task(send(near, 64 << 20))
            count = -1
            while len(layer.reads) != count:
                count = len(layer.reads)
                await asyncio.sleep(0.3)
            assert count * READ_MIN_BYTES < 2 * BACKLOG_MAX_BYTES
            assert not sending.done()
            layer.answer = b""
            while not sending.done():
                await asyncio.get_running_loop().sock_recv(near, 1 << 20)
                await asyncio.sleep(0)
                near.setblocking(False)
                if len(layer.reads) > count:
                    break
            await sending
            assert len(layer.reads) > count

    asyncio.run(asyncio.wait_for(story(), 30))
