"""Who takes more than its share is refused; a client from elsewhere goes on and does not notice.

Attackers come from other addresses of the loopback network than the honest client.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import time
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.amqp.errors import AmqpError
from cogwork.amqp.frames import AMQP_HEADER, SASL_HEADER, FrameReader
from cogwork.amqp.performatives import (
    Begin,
    Open,
    Performative,
    decode_performative,
    encode_performative,
)
from cogwork.amqp.sasl import SaslCode
from cogwork.container import users
from cogwork.container.config import parse
from cogwork.container.container import Container
from cogwork.dataplane.encoding.codec import decode, encode

from .raw_logins import log_in
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ATTACKER, HELPER, HONEST = "127.0.0.2", "127.0.0.3", "127.0.0.1"

HONEST_MAX_S = 5.0
"""What the honest client waits for something, on a machine that is busy with other tests."""


@contextlib.asynccontextmanager
async def limited(limits: str, more: str = "") -> AsyncIterator[Container]:
    """Runs a container, with an honest client beside the block that must not notice anything."""
    text = f'id = "north"\n[[listen]]\nport = 0\n{more}\n[limits]\n{limits}\n'
    container = Container(parse(text, "test"))
    await container.start()
    try:
        yield container
    finally:
        await container.stop(drain_timeout_s=0)


@contextlib.asynccontextmanager
async def undisturbed(container: Container, login: str = "") -> AsyncIterator[None]:
    """Has a client send and receive as long as the block runs, and connect at its end."""
    longest_s, is_over, is_ready = 0.0, asyncio.Event(), asyncio.Event()
    url = container.endpoints[0].replace("://", f"://{login}")

    async def go_on() -> None:
        nonlocal longest_s
        async with (
            cogwork.connect(url) as client,
            client.subscribe("topic/honest") as mine,
            client.publisher("topic/honest") as publisher,
        ):
            arrivals = aiter(mine)
            while not is_over.is_set():
                start_s = time.monotonic()
                await publisher.send(b"x")
                await anext(arrivals)
                longest_s = max(longest_s, time.monotonic() - start_s)
                is_ready.set()
                await asyncio.sleep(0.01)
            assert client.connections == 1

    task = asyncio.create_task(go_on())
    ready = asyncio.create_task(is_ready.wait())
    await asyncio.wait((task, ready), return_when=asyncio.FIRST_COMPLETED)
    try:
        yield
        start_s = time.monotonic()
        async with cogwork.connect(url) as client:
            await client.publish("sink/honest", b"x")
        assert time.monotonic() - start_s < HONEST_MAX_S
    finally:
        is_over.set()
        await task
    assert longest_s < HONEST_MAX_S


class Stranger:
    """A peer that writes frames itself, from an address of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._frames = FrameReader(1 << 20)
        self._has_header = False

    @classmethod
    async def connected(cls, container: Container, host: str) -> Stranger:
        port = int(container.endpoints[0].rpartition(":")[2])
        return cls(*await asyncio.open_connection("127.0.0.1", port, local_addr=(host, 0)))

    @classmethod
    async def opened(cls, container: Container, host: str) -> Stranger:
        """Opens, and begins a session."""
        stranger = await cls.connected(container, host)
        stranger._writer.write(AMQP_HEADER)
        stranger.say(Open(container_id="stranger"))
        stranger.say(Begin(next_outgoing_id=0, incoming_window=100, outgoing_window=100))
        return stranger

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def say(self, performative: Performative, payload: bytes = b"", channel: int = 0) -> None:
        body = encode_performative(performative, encode) + payload
        self.write(struct.pack(">IBBH", len(body) + 8, 2, 0, channel) + body)

    async def hear(self) -> list[Performative]:
        """Returns what comes next; nothing where the container has hung up."""
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
        """Returns the next error that it is told of; None where it is hung up on."""
        while said := await self.hear():
            for each in said:
                found = getattr(each, "error", None)
                if isinstance(found, AmqpError):
                    return found
        return None

    async def is_hung_up(self) -> bool:
        """Tells whether the container has hung up, with nothing to read before."""
        try:
            async with asyncio.timeout(0.3):
                return await self._reader.read(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def leave(self) -> None:
        self._writer.close()


async def strangers(container: Container, host: str, count: int) -> list[Stranger]:
    return [await Stranger.connected(container, host) for _ in range(count)]


async def left(found: list[Stranger]) -> int:
    """Counts those that the container has not hung up on."""
    return sum(not gone for gone in await asyncio.gather(*(each.is_hung_up() for each in found)))


def refusal(error: AmqpError | None) -> str:
    assert error is not None
    assert error.condition == "amqp:resource-limit-exceeded"
    return error.description or ""


def told_users(monkeypatch: pytest.MonkeyPatch) -> str:
    """Configures ann and bob, whose passwords take a fifth of the time to check."""
    monkeypatch.setattr(users, "PARALLELISM_P", 1)
    may = 'permissions = [{ address = "#", rights = ["send", "receive"] }]'
    hashed = users.hash_password("pw")
    return "".join(
        f'[[user]]\nname = "{name}"\npassword_hash = "{hashed}"\n{may}\n' for name in ("ann", "bob")
    )


@story
async def test_those_that_do_not_log_in_have_a_small_pool_with_shares() -> None:
    async with (
        limited("unauthenticated = 12\nunauthenticated_per_source = 8") as container,
        undisturbed(container),
    ):
        attackers = await strangers(container, ATTACKER, 20)
        assert await left(attackers) == 8
        helpers = await strangers(container, HELPER, 6)
        assert await left(helpers) == 6, "who has fewer gets in"
        assert await left(attackers) == 6, "who has most makes room"
        for each in (*attackers, *helpers):
            each.leave()


@story
async def test_a_source_has_a_share_of_the_connections() -> None:
    async with (
        limited("connections = 20\nconnections_per_source = 5") as container,
        undisturbed(container),
    ):
        inside = [await Stranger.opened(container, ATTACKER) for _ in range(5)]
        late = await Stranger.opened(container, ATTACKER)
        assert refusal(await late.error()) == (
            "source '127.0.0.2' has 5 connections, which is the limit "
            "(limits.connections_per_source = 5)"
        )
        inside.pop().leave()
        await eventually(lambda: len(container.peers.connections) == 5, "it has gone")
        again = await Stranger.opened(container, ATTACKER)
        assert len(await again.hear()) > 0
        for each in (*inside, late, again):
            each.leave()


@story
async def test_a_user_has_a_share_of_the_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    told = told_users(monkeypatch)
    async with (
        limited("connections_per_user = 2", told) as container,
        undisturbed(container, "bob:pw@"),
    ):
        ann = container.endpoints[0].replace("://", "://ann:pw@")
        async with cogwork.connect(ann), cogwork.connect(ann):
            with pytest.raises(cogwork.ConnectError, match="user 'ann' has 2 connections"):
                async with cogwork.connect(ann):
                    pass


@story
async def test_a_source_that_connects_too_often_waits_and_is_refused() -> None:
    async with (
        limited("connection_rate_per_source = 4.0") as container,
        undisturbed(container),
    ):
        attackers = await strangers(container, ATTACKER, 40)
        for each in attackers:
            each.write(SASL_HEADER)
        start_s = time.monotonic()
        assert await left(attackers) < 40
        await eventually(lambda: container.peers.refused > 20, "most are refused")
        assert container.peers.refused < 40
        taken = container.peers.accepted
        most = 4.0 * (2.0 + 1.0 + time.monotonic() - start_s) + 1 + 4
        assert taken <= most
        for each in attackers:
            each.leave()


@story
async def test_a_user_that_logs_in_too_often_waits_and_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = told_users(monkeypatch)
    async with limited("login_rate_per_user = 0.5", told) as container:
        port = int(container.endpoints[0].rpartition(":")[2])
        codes = await asyncio.gather(*(log_in(port, ATTACKER, "ann", "pw") for _ in range(6)))
        assert codes.count(SaslCode.OK) >= 2
        assert codes.count(SaslCode.SYS_TEMP) >= 1
        assert set(codes) == {SaslCode.OK, SaslCode.SYS_TEMP}
        start_s = time.monotonic()
        assert await log_in(port, HONEST, "bob", "pw") is SaslCode.OK
        assert time.monotonic() - start_s < HONEST_MAX_S
