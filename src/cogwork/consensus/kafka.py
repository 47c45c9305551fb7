"""The engine `kafka`: streams on Apache Kafka, each a topic of one partition.

Theory of operation. An entry is a message; its position is Kafka's offset and one. Kafka appends
whatever comes, so that an entry which lost a race is in the topic, too; every reader passes over it
by the rule of the chain, and the writer whose it was tries again. The idempotent producer keeps the
library's own repetitions out. Kafka answers (`acks=all`) when all replicas in step have the
message, and synchronises disks when it sees fit, unless the topic says `flush.messages=1`. A
consumer is shown what fewer replicas have than are asked for, so that agreement is not uniform.

The library's calls block, or answer in threads of its own: each consumer has a thread here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from cogwork.consensus.capabilities import Capabilities
from cogwork.consensus.durability import Durability
from cogwork.consensus.engine import Members
from cogwork.consensus.shared.host import SharedHost, number_of, text_of
from cogwork.consensus.shared.server import Gone, Moved, ServerDown, ServerRefused, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from cogwork.consensus.engine import EngineContext

__all__ = ("KafkaHost",)

T = TypeVar("T")

CAPABILITIES = Capabilities(durability=Durability.MEMORY, is_uniform=False)
"""What a topic of one replica gives; more, and `sync`, give more."""

ENTRY_BYTES_MAX = (1 << 20) - 1024
"""Kafka takes messages of 1 MiB, if `message.max.bytes` does not say otherwise."""

TOPIC_CHARACTERS_MAX = 249
REQUEST_TIMEOUT_S = 3.0
POLL_S = 0.2
READ_ENTRIES = 512
READ_KIB = 8 << 10
FETCH_KIB = 64

REFUSED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.INVALID_CONFIG,
    KafkaError.POLICY_VIOLATION,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError._AUTHENTICATION,
    KafkaError._INVALID_ARG,
)
ABSENT = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
)
UNSENT = (
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError._QUEUE_FULL,
)

_LOGGER = logging.getLogger(__name__)
_LOGGER.addHandler(logging.NullHandler())
_LOGGER.propagate = False


class KafkaHost(SharedHost):
    """Streams on one Kafka cluster.

    Options: `bootstrap`, such as `localhost:9092`, or several behind commas; `prefix` of topics'
    names; `client`, a table of whatever else librdkafka knows, such as `security.protocol`. Of a
    stream: `replicas` (1 if not given); `sync`, true where each message is to be synchronised.

    Args:
        context: What it is made with.
    """

    engine: ClassVar[str] = "kafka"
    host_options: ClassVar[tuple[str, ...]] = ("bootstrap", "prefix", "client")
    stream_options: ClassVar[tuple[str, ...]] = ("replicas", "sync")
    declared: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, context: EngineContext | None = None) -> None:
        super().__init__(context)
        options = self.context.options
        self._prefix = text_of(options, "prefix", "cogwork")
        client = options.get("client", {})
        if not isinstance(client, dict):
            raise ValueError("client is a table of librdkafka's configuration")
        self._settings: dict[str, Any] = {
            "bootstrap.servers": text_of(options, "bootstrap", "localhost:9092"),
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1000,
            "socket.timeout.ms": int(REQUEST_TIMEOUT_S * 1000),
            "error_cb": _ignore,
            "logger": _LOGGER,
            **client,
        }
        self._admin: AdminClient | None = None
        self._writer: Sender | None = None

    @property
    def admin(self) -> AdminClient:
        """What makes and deletes topics."""
        if self._admin is None:
            with _translated():
                self._admin = AdminClient(self._settings)
        return self._admin

    @property
    def sender(self) -> Sender:
        """What all streams send with."""
        if self._writer is None or self._writer.is_broken:
            if self._writer is not None:
                self._writer.close()
            self._writer = Sender(self._settings)
        return self._writer

    def topic(self, stream: str) -> str:
        """Returns the topic of a stream.

        Raises:
            ValueError: The name is too long.
        """
        quoted = "".join(_quoted(octet) for octet in stream.encode())
        topic = f"{self._prefix}.{quoted}"
        if len(topic) > TOPIC_CHARACTERS_MAX:
            raise ValueError(f"{topic} is too long for the name of a topic")
        return topic

    async def make_log(self, stream: str, options: Mapping[str, object]) -> KafkaLog:
        """Returns the log of a stream; makes it where it is new."""
        topic = self.topic(stream)
        replicas = int(number_of(options, "replicas", 1))
        is_synced = options.get("sync", False)
        if not isinstance(is_synced, bool):
            raise ValueError("sync is true or false")
        settings = {
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "retention.bytes": "-1",
            "min.insync.replicas": str(replicas // 2 + 1),
            "unclean.leader.election.enable": "false",
            **({"flush.messages": "1"} if is_synced else {}),
        }
        new = NewTopic(topic, num_partitions=1, replication_factor=replicas, config=settings)
        while True:
            with _translated(), _except(KafkaError.TOPIC_ALREADY_EXISTS):
                await self._ask(
                    self.admin.create_topics, [new], operation_timeout=REQUEST_TIMEOUT_S
                )
            try:
                return await self._settled(topic)
            except Gone:
                # It has just been made, or is just being deleted, and not every broker knows.
                await asyncio.sleep(POLL_S / 2)

    async def _settled(self, topic: str) -> KafkaLog:
        """Returns the log of a topic that all know."""
        durability = await self._durability(topic)
        # The producer gets its id now, and not with the first append.
        await self.sender.warm(topic)
        log = KafkaLog(self, topic, self._settings, durability)
        try:
            await log.ends()
        except BaseException:
            await log.close()
            raise
        return log

    async def drop_log(self, stream: str) -> None:
        """Deletes the log of a stream, if there is one."""
        with _translated(), _except(KafkaError.UNKNOWN_TOPIC_OR_PART):
            await self._ask(
                self.admin.delete_topics,
                [self.topic(stream)],
                operation_timeout=REQUEST_TIMEOUT_S,
            )

    async def delete_records(self, topic: str, offset: int) -> None:
        """Has the broker give up messages below an offset."""
        with _translated():
            await self._ask(self.admin.delete_records, [TopicPartition(topic, 0, offset)])

    async def members(self, topic: str) -> Members:
        """Tells which brokers hold a topic."""
        with _translated():
            found = await asyncio.to_thread(self.admin.list_topics, topic, REQUEST_TIMEOUT_S)
        partition = found.topics[topic].partitions.get(0)
        if partition is None:
            raise Gone
        names = {key: f"{each.host}:{each.port}" for key, each in found.brokers.items()}
        voters = tuple(names.get(each, str(each)) for each in partition.replicas)
        return Members(voters, (), names.get(partition.leader))

    async def disconnect(self) -> None:
        """Leaves the cluster."""
        writer, self._writer = self._writer, None
        if writer is not None:
            await asyncio.to_thread(writer.close)
        self._admin = None

    async def _durability(self, topic: str) -> Durability:
        """Asks how the topic is set up, which others may have made."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        with _translated():
            (settings,) = await self._ask(self.admin.describe_configs, [resource])
        voters = len((await self.members(topic)).voters)
        is_synced = settings["flush.messages"].value == "1"
        if voters > 1 and int(settings["min.insync.replicas"].value) > voters // 2:
            return Durability.QUORUM_DISK if is_synced else Durability.REPLICATED_MEMORY
        return Durability.DISK if is_synced else Durability.MEMORY

    @staticmethod
    async def _ask(
        call: Callable[..., Mapping[object, Future[T]]], what: object, **more: object
    ) -> list[T]:
        """Calls what answers with futures of threads, and awaits them."""
        futures = call(what, request_timeout=REQUEST_TIMEOUT_S, **more)
        return [await asyncio.wrap_future(each) for each in futures.values()]


class Sender:
    """An idempotent producer, and the thread in which it reports.

    Args:
        settings: librdkafka's.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.is_broken = False
        with _translated():
            self._producer = Producer(
                {
                    **settings,
                    "enable.idempotence": True,
                    "acks": "all",
                    "linger.ms": 0,
                    "message.timeout.ms": int(REQUEST_TIMEOUT_S * 1000),
                    "request.timeout.ms": int(REQUEST_TIMEOUT_S * 1000),
                    "message.max.bytes": ENTRY_BYTES_MAX + 1024,
                    "queue.buffering.max.kbytes": 64 << 10,
                }
            )
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="cogwork-kafka", daemon=True)
        self._thread.start()

    async def warm(self, topic: str) -> None:
        """Has the producer know the topic's leader."""
        with _translated():
            await asyncio.to_thread(self._producer.list_topics, topic, REQUEST_TIMEOUT_S)

    def send(self, topic: str, entry: bytes) -> asyncio.Future[int]:
        """Sends a message; its offset comes later."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[int] = loop.create_future()

        def report(error: KafkaError | None, message: Any) -> None:  # noqa: ANN401 # the library's
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._report, answer, error, message)

        self._producer.produce(topic, entry, partition=0, on_delivery=report)
        return answer

    def close(self) -> None:
        """Ends it, with what it has not sent."""
        self._is_closed.set()
        self._thread.join()
        with contextlib.suppress(KafkaException):
            self._producer.purge()
            self._producer.flush(0.1)

    def _report(
        self,
        answer: asyncio.Future[int],
        error: KafkaError | None,
        message: Any,  # noqa: ANN401 # the library's
    ) -> None:
        self.is_broken = self.is_broken or (error is not None and error.fatal())
        if answer.done():
            return
        if error is not None:
            answer.set_exception(KafkaException(error))
        else:
            answer.set_result(message.offset())

    def _poll(self) -> None:
        while not self._is_closed.is_set():
            self._producer.poll(POLL_S)


class KafkaLog:
    """The log of one stream.

    Args:
        host: Whose it is.
        topic: Its topic.
        settings: librdkafka's.
        durability: As the topic is set up.
    """

    entry_bytes_max = ENTRY_BYTES_MAX

    def __init__(
        self, host: KafkaHost, topic: str, settings: Mapping[str, Any], durability: Durability
    ) -> None:
        self.capabilities = Capabilities(durability=durability, is_uniform=False)
        self._host = host
        self._topic = topic
        self._settings = settings
        self._last = 0
        self._fetcher: KafkaReader | None = None
        self._fetching = asyncio.Lock()

    async def append(self, expected: int, entry: bytes) -> int:
        """Appends an entry, which counts if it is behind the one at position `expected`."""
        with _translated():
            position = await self._host.sender.send(self._topic, entry) + 1
        if position != expected + 1:
            raise Moved(position)
        return position

    async def fetch(self, position: int) -> tuple[int, bytes] | None:
        """Returns the first entry at a position or above."""
        async with self._fetching:
            fetcher = self._opened()
            if position > self._last:
                _, self._last = await fetcher.ends()
            return await fetcher.fetch(position) if position <= self._last else None

    async def ends(self) -> tuple[int, int]:
        """Returns the positions of the first and the last entry."""
        async with self._fetching:
            first, self._last = await self._opened().ends()
            return first, self._last

    async def reader(self, position: int) -> KafkaReader:
        """Returns a reader that begins at a position."""
        reader = KafkaReader(self._settings, self._topic)
        await reader.seek(position)
        return reader

    async def trim(self, before: int) -> None:
        """Gives up the entries below a position."""
        await self._host.delete_records(self._topic, before - 1)

    async def members(self) -> Members:
        """Tells which brokers hold the log."""
        return await self._host.members(self._topic)

    async def close(self) -> None:
        """Lets go of it."""
        fetcher, self._fetcher = self._fetcher, None
        if fetcher is not None:
            await fetcher.close()

    def _opened(self) -> KafkaReader:
        if self._fetcher is None:
            self._fetcher = KafkaReader(self._settings, self._topic, is_single=True)
        return self._fetcher


class KafkaReader:
    """A consumer, with a thread of its own.

    Args:
        settings: librdkafka's.
        topic: What it reads.
        is_single: Whether it fetches entries one by one: it reads little ahead, and does not wait
            at the broker for more, behind which the next fetch would have to wait, too.
    """

    def __init__(self, settings: Mapping[str, Any], topic: str, is_single: bool = False) -> None:
        read_kib = FETCH_KIB if is_single else READ_KIB
        with _translated():
            self._consumer = Consumer(
                {
                    **settings,
                    "group.id": "cogwork",
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "queued.max.messages.kbytes": read_kib,
                    "fetch.message.max.bytes": read_kib << 10,
                    "fetch.queue.backoff.ms": 5,
                    "fetch.error.backoff.ms": 50,
                    "fetch.wait.max.ms": 1 if is_single else 100,
                    "allow.auto.create.topics": False,
                }
            )
        self._partition = TopicPartition(topic, 0)
        self._is_warm = False
        self._thread = ThreadPoolExecutor(1, "cogwork-kafka")

    async def seek(self, position: int) -> None:
        """Begins at a position."""
        if not self._is_warm:
            # A consumer that does not know the leader looks for it twice a second.
            ask = partial(self._consumer.list_topics, timeout=REQUEST_TIMEOUT_S)
            await self._run(ask, self._partition.topic)
            self._is_warm = True
        offset = position - 1 if position > 1 else OFFSET_BEGINNING
        place = TopicPartition(self._partition.topic, 0, offset)
        await self._run(self._consumer.assign, [place])

    async def next(self, wait_s: float) -> Sequence[tuple[int, bytes]]:
        """Returns what follows; nothing where nothing came in time."""
        limit_s = asyncio.get_running_loop().time() + wait_s
        while True:
            entries = await self._run(self._poll)
            if entries or asyncio.get_running_loop().time() >= limit_s:
                return entries

    async def fetch(self, position: int) -> tuple[int, bytes] | None:
        """Returns the entry at a position, which is there, or the next one."""
        await self.seek(position)
        found = await self.next(REQUEST_TIMEOUT_S)
        await self._run(self._consumer.unassign)
        if not found:
            raise ServerDown("Kafka: the broker does not answer", may_have_happened=False)
        return found[0]

    async def ends(self) -> tuple[int, int]:
        """Returns the positions of the first and the last entry."""
        ask = partial(self._consumer.get_watermark_offsets, timeout=REQUEST_TIMEOUT_S, cached=False)
        found = await self._run(ask, self._partition)
        if found is None:
            raise ServerDown("Kafka: the broker does not answer", may_have_happened=False)
        first, end = found
        return first + 1, end

    async def close(self) -> None:
        """Ends it; the thread ends when it has."""
        self._thread.submit(self._consumer.close)
        self._thread.shutdown(wait=False)

    def _poll(self) -> list[tuple[int, bytes]]:
        first = self._consumer.poll(POLL_S)
        if first is None:
            return []
        entries = []
        for message in (first, *self._consumer.consume(READ_ENTRIES, 0)):
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    continue
                raise KafkaException(error)
            entries.append((message.offset() + 1, message.value() or b""))
        return entries

    async def _run(self, call: Callable[..., T], *arguments: object) -> T:
        try:
            with _translated():
                return await asyncio.get_running_loop().run_in_executor(
                    self._thread, call, *arguments
                )
        except RuntimeError as error:
            raise ServerDown(f"Kafka: {error}", may_have_happened=False) from error


def _quoted(octet: int) -> str:
    character = chr(octet)
    is_plain = character.isascii() and (character.isalnum() or character in "-.")
    return character if is_plain else f"_{octet:02X}"


def _ignore(error: KafkaError) -> None:
    """Takes the client's complaints; whoever asks is answered."""
    del error


@contextmanager
def _except(code: int) -> Iterator[None]:
    """Lets one of Kafka's errors pass."""
    try:
        yield
    except KafkaException as error:
        if error.args[0].code() != code:
            raise


@contextmanager
def _translated() -> Iterator[None]:
    """Turns the library's errors into those of logs."""
    try:
        yield
    except BufferError as error:
        raise ServerDown(f"Kafka: {error}", may_have_happened=False) from error
    except KafkaException as error:
        found = error.args[0]
        code = found.code() if isinstance(found, KafkaError) else None
        text = f"Kafka: {found.str() if isinstance(found, KafkaError) else found}"
        if code in ABSENT:
            raise Gone from error
        if code == KafkaError.MSG_SIZE_TOO_LARGE:
            raise TooLarge(text) from error
        if code in REFUSED:
            raise ServerRefused(text) from error
        raise ServerDown(text, may_have_happened=code not in UNSENT) from error
