"""Attackers that write frames themselves."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from dataclasses import replace

from cogwork.amqp.errors import AmqpError
from cogwork.amqp.frames import AMQP_HEADER, FrameReader
from cogwork.amqp.performatives import (
    Attach,
    Begin,
    Close,
    Flow,
    Open,
    Performative,
    Role,
    Transfer,
    decode_performative,
    encode_performative,
)
from cogwork.amqp.terminus import Source, Target
from cogwork.dataplane.encoding.codec import decode, encode

__all__ = ("ATTACKER", "HELPER", "HONEST", "HONEST_MAX_S", "Stranger", "refusal")

ATTACKER, HELPER, HONEST = "127.0.0.2", "127.0.0.3", "127.0.0.1"

HONEST_MAX_S = 5.0
"""What an honest client waits for something, on a machine that is busy with other tests."""


class Stranger:
    """A peer that writes frames itself, from an address of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._frames = FrameReader(1 << 20)
        self._has_header = False
        self._window = 0

    @classmethod
    async def connected(cls, url: str, host: str, receive_bytes: int = 0) -> Stranger:
        """Connect from an address; with a receive buffer of so many bytes, where that is given."""
        sock = socket.socket()
        if receive_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        sock.bind((host, 0))
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(sock, ("127.0.0.1", int(url.rpartition(":")[2])))
        return cls(*await asyncio.open_connection(sock=sock, limit=4096))

    @classmethod
    async def opened(
        cls, url: str, host: str, *, window: int = 100, receive_bytes: int = 0
    ) -> Stranger:
        """Open, and begin a session."""
        stranger = await cls.connected(url, host, receive_bytes)
        stranger._writer.write(AMQP_HEADER)
        stranger.say(Open(container_id="stranger"))
        stranger._window = window
        stranger.say(Begin(next_outgoing_id=0, incoming_window=window, outgoing_window=100))
        return stranger

    def publish_to(self, address: str | None, handle: int = 0) -> None:
        """Attach a link on which this side sends; to a new temporary queue by default."""
        self.say(
            Attach(
                name=f"out-{handle}",
                handle=handle,
                role=Role.SENDER,
                source=Source(),
                target=Target(address=address, dynamic=address is None),
                initial_delivery_count=0,
            )
        )

    def receive_from(self, address: str | None, credit: int) -> None:
        """Attach a link on which this side receives; at a new address where none is given."""
        source = Source(address=address, dynamic=address is None)
        self.say(Attach(name="in", handle=0, role=Role.RECEIVER, source=source, target=Target()))
        self.say(
            Flow(
                next_incoming_id=0,
                incoming_window=self._window,
                next_outgoing_id=0,
                outgoing_window=100,
                handle=0,
                delivery_count=0,
                link_credit=credit,
            )
        )

    def send_part(self, number: int, payload: bytes, *, is_first: bool, more: bool) -> None:
        """Send a frame of a delivery."""
        head = Transfer(handle=0, more=more, settled=True)
        if is_first:
            tag = b"%d" % number
            head = replace(head, delivery_id=number, delivery_tag=tag, message_format=0)
        self.say(head, payload)

    async def drain(self) -> bool:
        """Wait until what was written is under way; tell whether it still can be."""
        try:
            await self._writer.drain()
        except ConnectionError:
            return False
        return not self._reader.at_eof()

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def say(self, performative: Performative, payload: bytes = b"", channel: int = 0) -> None:
        body = encode_performative(performative, encode) + payload
        self.write(struct.pack(">IBBH", len(body) + 8, 2, 0, channel) + body)

    async def hear(self) -> list[Performative]:
        """Return what comes next; nothing where the container has hung up."""
        if not self._has_header:
            self._has_header = True
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                await self._reader.readexactly(8)
        with contextlib.suppress(ConnectionError):
            if data := await self._reader.read(65536):
                return [
                    decode_performative(frame.body, 0, decode)[0]
                    for frame in self._frames.feed(data)
                    if frame.body
                ]
        return []

    async def error(self) -> AmqpError | None:
        """Return the next error that it is told of; None where it is hung up on."""
        while said := await self.hear():
            for each in said:
                found = getattr(each, "error", None)
                if isinstance(found, AmqpError):
                    return found
        return None

    async def is_closed(self) -> bool:
        """Return whether the container closes the connection, whatever it says before."""
        return await self.hears(Close)

    async def hears(self, kind: type[Performative]) -> bool:
        """Return whether the container says something of a kind, whatever it says before."""
        while said := await self.hear():
            if any(isinstance(each, kind) for each in said):
                return True
        return False

    async def is_hung_up(self) -> bool:
        """Return whether the container has hung up, with nothing to read before."""
        try:
            async with asyncio.timeout(0.3):
                return await self._reader.read(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def leave(self) -> None:
        self._writer.close()


def refusal(error: AmqpError | None) -> str:
    assert error is not None
    assert error.condition == "amqp:resource-limit-exceeded"
    return error.description or ""
