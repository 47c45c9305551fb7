"""The log of a stream on NATS JetStream."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import APIError, NotFoundError

from cogwork.engines.nats.errors import translated
from cogwork.engines.nats.reader import NatsReader
from cogwork.engines.shared.server import Gone, Moved, ServerDown
from cogwork.plugin.engine.capabilities import Capabilities
from cogwork.plugin.engine.contract import Members
from cogwork.plugin.engine.durability import Durability

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js.api import StreamInfo

    from cogwork.engines.nats.connection import NatsConnection

__all__ = ("NatsLog", "place_of")

EXPECTED = "Nats-Expected-Last-Sequence"
HEADER_BYTES = 1024
APPEND_TIMEOUT_S = 1.5
"""An append whose leader has died is never answered; another attempt is safe."""
TRUSTED_S = 0.25
"""So long after an answer the stream is taken for the same one; to ask again takes a round trip."""
IDLE_CONSUMER_S = 30.0
WRONG_LAST_SEQUENCE = 10071
STREAM_NOT_FOUND = 10059


class NatsLog:
    """The log of one stream.

    Args:
        connection: To the server.
        client: What the connection was when the stream was looked up.
        info: What the server says of the stream.
    """

    def __init__(self, connection: NatsConnection, client: Client, info: StreamInfo) -> None:
        is_replicated = (info.config.num_replicas or 1) > 1
        self.capabilities = Capabilities(
            durability=Durability.REPLICATED_MEMORY if is_replicated else Durability.MEMORY,
            is_uniform=is_replicated,
        )
        self.entry_bytes_max = client.max_payload - HEADER_BYTES
        self._connection = connection
        self._name = info.config.name or ""
        self._created = getattr(info, "created", None)
        self._contact = _contact(client)
        self._heard_s = 0.0

    async def append(self, expected: int, entry: bytes) -> int:
        """Append an entry behind the one at position `expected`."""
        client, streams = await self._connection.session()
        if not client.is_connected:
            raise ServerDown("NATS: not connected", may_have_happened=False)
        await self._check(client)
        with translated():
            try:
                answer = await streams.publish(
                    self._name, entry, timeout=APPEND_TIMEOUT_S, headers={EXPECTED: str(expected)}
                )
            except APIError as error:
                if error.err_code != WRONG_LAST_SEQUENCE:
                    raise
                raise Moved(int(str(error.description).rpartition(":")[2])) from error
        self._heard_s = _now_s()
        return answer.seq

    async def fetch(self, position: int) -> tuple[int, bytes] | None:
        """Return the first entry at a position or above."""
        streams = (await self._connection.session()).streams
        with translated():
            try:
                found = await streams.get_msg(
                    self._name, seq=position, subject=self._name, next=True
                )
            except NotFoundError as error:
                if error.err_code == STREAM_NOT_FOUND:
                    raise
                return None
        return int(found.seq or 0), found.data or b""

    async def ends(self) -> tuple[int, int]:
        """Return the positions of the first and the last entry."""
        info = await self._info()
        return max(info.state.first_seq, 1), info.state.last_seq

    async def reader(self, position: int) -> NatsReader:
        """Return a reader that begins at a position."""
        client, streams = await self._connection.session()
        with translated():
            inbox = client.new_inbox()
            consumer = await streams.add_consumer(
                self._name,
                ConsumerConfig(
                    deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                    opt_start_seq=position,
                    ack_policy=AckPolicy.NONE,
                    inactive_threshold=IDLE_CONSUMER_S,
                    mem_storage=True,
                    num_replicas=1,
                ),
            )
            subscription = await client.subscribe(inbox)
        return NatsReader(client, consumer.stream_name, consumer.name, subscription)

    async def trim(self, before: int) -> None:
        """Give up the entries below a position."""
        if before <= 1:
            return  # a server takes the position of the first entry for none, and gives up all
        streams = (await self._connection.session()).streams
        with translated():
            await streams.purge_stream(self._name, seq=before)

    async def members(self) -> Members:
        """Return which servers hold the log."""
        cluster = (await self._info()).cluster
        if cluster is None or cluster.leader is None:
            place = place_of((await self._connection.session()).client)
            return Members((place,), (), place)
        others = [peer.name for peer in cluster.replicas or () if peer.name]
        return Members((cluster.leader, *others), (), cluster.leader)

    async def close(self) -> None:
        """Let go of it."""

    async def _info(self) -> StreamInfo:
        streams = (await self._connection.session()).streams
        with translated():
            info = await streams.stream_info(self._name)
        if getattr(info, "created", None) != self._created:
            raise Gone
        self._heard_s = _now_s()
        return info

    async def _check(self, client: Client) -> None:
        """See, before something is appended, that this is the log that was read.

        The server compares positions, and no more. One that was away may have lost entries, and
        have others there by now; so may another stream of the same name, of which nobody tells.

        Raises:
            Gone: It is another one.
            ServerDown: The server was away, or is: look what it has first.
        """
        contact, known = _contact(client), self._contact
        self._contact = contact
        if contact != known:
            raise ServerDown("NATS: the connection was lost", may_have_happened=False)
        if _now_s() > self._heard_s + TRUSTED_S:
            try:
                await self._info()
            except ServerDown as error:
                raise ServerDown(str(error), may_have_happened=False) from error


def _contact(client: Client) -> tuple[Client, int]:
    """Return what is another one after the connection was lost."""
    return client, client.stats["reconnects"]


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def place_of(client: Client) -> str:
    """Return the host and port of a client's server, of whose URL people see no more."""
    url = client.connected_url
    return str(url.netloc).rpartition("@")[2] if url is not None else "nats"
