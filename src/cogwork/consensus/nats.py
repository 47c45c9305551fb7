"""The engine `nats`: streams on NATS JetStream.

Theory of operation. A stream of ours is a stream of JetStream with one subject; an entry is a
message, published with the last sequence that is expected, which the stream's leader compares. The
position is the sequence. JetStream answers when a majority of replicas has the message, and before
any disk has synchronised it: with three replicas that is replicated memory, with one it is memory.
A reader is a pull consumer that asks for no more than it has room for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

import nats
from nats.errors import ConnectionClosedError, MaxPayloadError, NoRespondersError
from nats.errors import Error as NatsError
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError

from cogwork.consensus.capabilities import Capabilities
from cogwork.consensus.durability import Durability
from cogwork.consensus.engine import Members
from cogwork.consensus.shared.host import SharedHost, number_of, text_of
from cogwork.consensus.shared.server import Gone, Moved, ServerDown, ServerRefused, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription
    from nats.js import JetStreamContext
    from nats.js.api import StreamInfo

    from cogwork.consensus.engine import EngineContext

__all__ = ("NatsHost",)

CAPABILITIES = Capabilities(durability=Durability.MEMORY, is_uniform=False)
"""What one server gives; a stream with three replicas gives more."""

EXPECTED = "Nats-Expected-Last-Sequence"
HEADER_BYTES = 1024
REQUEST_TIMEOUT_S = 3.0
APPEND_TIMEOUT_S = 1.5
"""An append whose leader has died is never answered; another attempt is safe."""
PULL_ENTRIES = 256
PULL_BYTES = 4 << 20
PULL_EXPIRES_S = 5.0
HEARTBEAT_S = 0.5
SILENCE_S = 1.5
"""A consumer that sends not even heartbeats for so long has died with its server."""
IDLE_CONSUMER_S = 30.0
WRONG_LAST_SEQUENCE = 10071
STREAM_NOT_FOUND = 10059
STATUS = "Status"


class NatsHost(SharedHost):
    """Streams on one NATS server, or a cluster of them.

    Options: `url`, such as `nats://localhost:4222`, or several behind commas; `prefix` of streams'
    names; `user` and `password`, or `token`, or `credentials_file`. Of a stream: `replicas` (1 if
    not given), `storage` (`file` or `memory`).

    Args:
        context: What it is made with.
    """

    engine: ClassVar[str] = "nats"
    host_options: ClassVar[tuple[str, ...]] = (
        *("url", "prefix", "user", "password", "token", "credentials_file"),
    )
    stream_options: ClassVar[tuple[str, ...]] = ("replicas", "storage")
    declared: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, context: EngineContext | None = None) -> None:
        super().__init__(context)
        options = self.context.options
        self._urls = [
            each.strip() for each in text_of(options, "url", "nats://localhost:4222").split(",")
        ]
        self._prefix = text_of(options, "prefix", "cogwork")
        names = {
            "user": "user",
            "password": "password",
            "token": "token",
            "credentials_file": "user_credentials",
        }
        self._login = {names[name]: text_of(options, name, "") for name in names if name in options}
        self._client: Client | None = None
        self._connecting = asyncio.Lock()

    def _name(self, stream: str) -> str:
        # A name of JetStream has no dots, blanks, slashes or wildcards.
        quoted = quote(stream, safe="").replace(".", "%2E").replace("*", "%2A").replace("%", "=")
        return f"{self._prefix}-{quoted}"

    async def make_log(self, stream: str, options: Mapping[str, object]) -> NatsLog:
        """Returns the log of a stream; makes it where it is new."""
        replicas = int(number_of(options, "replicas", 1))
        storage = text_of(options, "storage", "file")
        if storage not in ("file", "memory"):
            raise ValueError(f"storage is file or memory, not {storage!r}")
        name = self._name(stream)
        client = await self._connected()
        streams = client.jetstream(timeout=REQUEST_TIMEOUT_S)
        config = StreamConfig(
            name=name,
            subjects=[name],
            storage=StorageType(storage),
            num_replicas=replicas,
            discard=DiscardPolicy.NEW,
        )
        with _translated():
            try:
                info = await streams.stream_info(name)
            except NotFoundError:
                info = await streams.add_stream(config)
        return NatsLog(client, streams, info)

    async def drop_log(self, stream: str) -> None:
        """Deletes the log of a stream, if there is one."""
        client = await self._connected()
        with _translated(), contextlib.suppress(NotFoundError):
            await client.jetstream(timeout=REQUEST_TIMEOUT_S).delete_stream(self._name(stream))

    async def reach(self) -> None:
        """Sees that the server answers."""
        client = await self._connected()
        if not client.is_connected:
            raise ServerDown("NATS: not connected", may_have_happened=False)
        with _translated():
            await client.flush(int(REQUEST_TIMEOUT_S))

    async def disconnect(self) -> None:
        """Leaves the server."""
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(NatsError, OSError):
                await client.close()

    async def _connected(self) -> Client:
        async with self._connecting:
            if self._client is not None and not self._client.is_closed:
                return self._client
            try:
                async with asyncio.timeout(REQUEST_TIMEOUT_S):
                    self._client = await nats.connect(
                        self._urls,
                        error_cb=_ignore,
                        connect_timeout=1,
                        reconnect_time_wait=0.1,
                        max_reconnect_attempts=-1,
                        ping_interval=2,
                        **self._login,
                    )
            except (TimeoutError, NatsError, OSError) as error:
                reason = str(error) or "no answer in time"
                raise ServerDown(f"NATS: {reason}", may_have_happened=False) from error
            return self._client


async def _ignore(error: Exception) -> None:
    """Takes the client's complaints; whoever asks is answered."""
    del error


class NatsLog:
    """The log of one stream.

    Args:
        client: The connection.
        streams: JetStream behind it.
        info: What the server says of the stream.
    """

    def __init__(self, client: Client, streams: JetStreamContext, info: StreamInfo) -> None:
        is_replicated = (info.config.num_replicas or 1) > 1
        self.capabilities = Capabilities(
            durability=Durability.REPLICATED_MEMORY if is_replicated else Durability.MEMORY,
            is_uniform=is_replicated,
        )
        self.entry_bytes_max = client.max_payload - HEADER_BYTES
        self._client = client
        self._streams = streams
        self._name = info.config.name or ""
        self._created = getattr(info, "created", None)

    async def append(self, expected: int, entry: bytes) -> int:
        """Appends an entry behind the one at position `expected`."""
        if not self._client.is_connected:
            raise ServerDown("NATS: not connected", may_have_happened=False)
        with _translated():
            try:
                answer = await self._streams.publish(
                    self._name, entry, timeout=APPEND_TIMEOUT_S, headers={EXPECTED: str(expected)}
                )
            except APIError as error:
                if error.err_code != WRONG_LAST_SEQUENCE:
                    raise
                raise Moved(int(str(error.description).rpartition(":")[2])) from error
        return answer.seq

    async def fetch(self, position: int) -> tuple[int, bytes] | None:
        """Returns the first entry at a position or above."""
        with _translated():
            try:
                found = await self._streams.get_msg(
                    self._name, seq=position, subject=self._name, next=True
                )
            except NotFoundError as error:
                if error.err_code == STREAM_NOT_FOUND:
                    raise
                return None
        return int(found.seq or 0), found.data or b""

    async def ends(self) -> tuple[int, int]:
        """Returns the positions of the first and the last entry."""
        info = await self._info()
        return max(info.state.first_seq, 1), info.state.last_seq

    async def reader(self, position: int) -> NatsReader:
        """Returns a reader that begins at a position."""
        with _translated():
            inbox = self._client.new_inbox()
            consumer = await self._streams.add_consumer(
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
            subscription = await self._client.subscribe(inbox)
        return NatsReader(
            self._client, self._streams, consumer.stream_name, consumer.name, subscription
        )

    async def trim(self, before: int) -> None:
        """Gives up the entries below a position."""
        if before <= 1:
            return  # a server takes the position of the first entry for none, and gives up all
        with _translated():
            await self._streams.purge_stream(self._name, seq=before)

    async def members(self) -> Members:
        """Tells which servers hold the log."""
        cluster = (await self._info()).cluster
        if cluster is None or cluster.leader is None:
            place = str(self._client.connected_url.netloc if self._client.connected_url else "nats")
            return Members((place,), (), place)
        others = [peer.name for peer in cluster.replicas or () if peer.name]
        return Members((cluster.leader, *others), (), cluster.leader)

    async def close(self) -> None:
        """Lets go of it."""

    async def _info(self) -> StreamInfo:
        with _translated():
            info = await self._streams.stream_info(self._name)
        if getattr(info, "created", None) != self._created:
            raise Gone
        return info


class NatsReader:
    """Reads a log from a position on, and follows it.

    Args:
        client: The connection.
        streams: JetStream behind it.
        stream: The stream's name there.
        consumer: The consumer's.
        subscription: Where what was asked for arrives.
    """

    def __init__(
        self,
        client: Client,
        streams: JetStreamContext,
        stream: str,
        consumer: str,
        subscription: Subscription,
    ) -> None:
        self._client = client
        self._streams = streams
        self._stream = stream
        self._consumer = consumer
        self._subscription = subscription
        self._asked = 0
        self._heard_s = 0.0

    async def next(self, wait_s: float) -> Sequence[tuple[int, bytes]]:
        """Returns what follows; nothing where nothing came in time."""
        entries: list[tuple[int, bytes]] = []
        limit_s = asyncio.get_running_loop().time() + wait_s
        while not entries:
            now_s = asyncio.get_running_loop().time()
            if now_s >= limit_s:
                break
            if not self._asked:
                await self._ask()
            if now_s > self._heard_s + SILENCE_S:
                raise ServerDown("NATS: the consumer does not answer", may_have_happened=False)
            wait_s = min(limit_s - now_s, SILENCE_S)
            with contextlib.suppress(TimeoutError), _translated(passing=TimeoutError):
                self._take(await self._message(wait_s), entries)
                while self._subscription.pending_msgs:
                    self._take(await self._message(1), entries)
        return entries

    async def _message(self, wait_s: float) -> Msg:
        try:
            return await self._subscription.next_msg(wait_s)
        except ConnectionClosedError as error:
            # Of a task that was cancelled the library says that, too, once it is closed.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise asyncio.CancelledError from error
            raise

    async def close(self) -> None:
        """Ends it; the server forgets the consumer by itself where it cannot be told."""
        with contextlib.suppress(NatsError, OSError, TimeoutError):
            await self._subscription.unsubscribe()
            if self._client.is_connected:
                request = f"$JS.API.CONSUMER.DELETE.{self._stream}.{self._consumer}"
                await self._client.publish(request)

    async def _ask(self) -> None:
        """Asks for as much as there is room for."""
        request = {
            "batch": PULL_ENTRIES,
            "max_bytes": max(PULL_BYTES, self._client.max_payload * 2),
            "expires": int(PULL_EXPIRES_S * 1e9),
            "idle_heartbeat": int(HEARTBEAT_S * 1e9),
        }
        with _translated():
            await self._client.publish(
                f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}",
                json.dumps(request).encode(),
                self._subscription.subject,
            )
        self._asked = PULL_ENTRIES
        self._heard_s = asyncio.get_running_loop().time()

    def _take(self, message: Msg, entries: list[tuple[int, bytes]]) -> None:
        self._heard_s = asyncio.get_running_loop().time()
        status = (message.headers or {}).get(STATUS)
        if status is None:
            self._asked -= 1
            entries.append((message.metadata.sequence.stream, message.data))
        elif status in ("404", "408", "409"):
            self._asked = 0
        elif status != "100":
            raise ServerDown(f"NATS: the consumer is gone ({status})", may_have_happened=False)


@contextmanager
def _translated(passing: type[Exception] | tuple[()] = ()) -> Iterator[None]:
    """Turns the library's errors into those of logs."""
    try:
        yield
    except (ServerDown, ServerRefused, Moved):
        raise
    except NotFoundError as error:
        raise Gone from error
    except passing:
        raise
    except MaxPayloadError as error:
        raise TooLarge(f"NATS: {error}") from error
    except (NoStreamResponseError, NoRespondersError) as error:
        raise ServerDown(f"NATS: {error}", may_have_happened=False) from error
    except APIError as error:
        if error.code == 503:
            raise ServerDown(f"NATS: {error}") from error
        raise ServerRefused(f"NATS: {error}") from error
    except (NatsError, TimeoutError, OSError) as error:
        raise ServerDown(f"NATS: {str(error) or 'no answer in time'}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ServerDown(f"NATS answers nonsense: {error}") from error
