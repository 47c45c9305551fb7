"""Opens streams on a Kafka cluster."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, ClassVar

from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # it does not list what it offers
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from cogwork.engines.kafka.errors import REQUEST_TIMEOUT_S, passing, translated
from cogwork.engines.kafka.log import KafkaLog
from cogwork.engines.kafka.sender import Sender
from cogwork.engines.shared.host import SharedHost, number_of, text_of
from cogwork.engines.shared.server import Gone
from cogwork.plugin.engine.capabilities import Capabilities
from cogwork.plugin.engine.contract import Members
from cogwork.plugin.engine.durability import Durability

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from cogwork.plugin.engine.contract import EngineContext

__all__ = ("KafkaHost",)

CAPABILITIES = Capabilities(durability=Durability.MEMORY, is_uniform=False)
"""What a topic of one replica gives; more, and `sync`, give more."""

TOPIC_CHARACTERS_MAX = 249
PAUSE_S = 0.1

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
    url_option: ClassVar[str] = "bootstrap"
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
            "socket.keepalive.enable": True,
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
            with translated():
                self._admin = AdminClient(self._settings)
        return self._admin

    @property
    def sender(self) -> Sender:
        """What all streams send with."""
        if self._writer is None or self._writer.is_broken:
            if self._writer is not None:
                asyncio.get_running_loop().run_in_executor(None, self._writer.close)
            self._writer = Sender(self._settings)
        return self._writer

    def topic(self, stream: str) -> str:
        """Return the topic of a stream.

        Raises:
            ValueError: The name is too long.
        """
        quoted = "".join(_quoted(octet) for octet in stream.encode())
        topic = f"{self._prefix}.{quoted}"
        if len(topic) > TOPIC_CHARACTERS_MAX:
            raise ValueError(f"{topic} is too long for the name of a topic")
        return topic

    async def make_log(self, stream: str, options: Mapping[str, object]) -> KafkaLog:
        """Return the log of a stream; make it where it is new."""
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
            with translated(), passing(KafkaError.TOPIC_ALREADY_EXISTS):
                await self._ask(
                    self.admin.create_topics, [new], operation_timeout=REQUEST_TIMEOUT_S
                )
            try:
                return await self._settled(topic)
            except Gone:
                # It has just been made, or is just being deleted, and not every broker knows.
                await asyncio.sleep(PAUSE_S)

    async def _settled(self, topic: str) -> KafkaLog:
        """Return the log of a topic that all know."""
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
        """Delete the log of a stream, if there is one, and wait until a broker has done so."""
        topic = self.topic(stream)
        with translated(), passing(KafkaError.UNKNOWN_TOPIC_OR_PART):
            await self._ask(self.admin.delete_topics, [topic], operation_timeout=REQUEST_TIMEOUT_S)
        # Who made one of the same name at once would be given the one that is about to go.
        loop = asyncio.get_running_loop()
        limit_s = loop.time() + REQUEST_TIMEOUT_S
        while topic in await self._topics() and loop.time() < limit_s:
            await asyncio.sleep(PAUSE_S)

    async def _topics(self) -> Collection[str]:
        """List all topics; to ask for a single one may make it."""
        with translated():
            return (await asyncio.to_thread(self.admin.list_topics, None, REQUEST_TIMEOUT_S)).topics

    async def delete_records(self, topic: str, offset: int) -> None:
        """Have the broker give up messages below an offset."""
        with translated():
            await self._ask(self.admin.delete_records, [TopicPartition(topic, 0, offset)])

    async def members(self, topic: str) -> Members:
        """Return which brokers hold a topic."""
        with translated():
            found = await asyncio.to_thread(self.admin.list_topics, topic, REQUEST_TIMEOUT_S)
        partition = found.topics[topic].partitions.get(0)
        if partition is None:
            raise Gone
        names = {key: f"{each.host}:{each.port}" for key, each in found.brokers.items()}
        voters = tuple(names.get(each, str(each)) for each in partition.replicas)
        return Members(voters, (), names.get(partition.leader))

    async def reach(self) -> None:
        """See that a broker answers."""
        await self._topics()

    async def disconnect(self) -> None:
        """Leave the cluster."""
        writer, self._writer = self._writer, None
        if writer is not None:
            await asyncio.to_thread(writer.close)
        self._admin = None

    async def _durability(self, topic: str) -> Durability:
        """Ask how the topic is set up, which others may have made."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        with translated():
            (settings,) = await self._ask(self.admin.describe_configs, [resource])
        voters = len((await self.members(topic)).voters)
        is_synced = settings["flush.messages"].value == "1"
        if voters > 1 and int(settings["min.insync.replicas"].value) > voters // 2:
            return Durability.QUORUM_DISK if is_synced else Durability.REPLICATED_MEMORY
        return Durability.DISK if is_synced else Durability.MEMORY

    @staticmethod
    async def _ask(
        call: Callable[..., Mapping[Any, Any]], what: object, **more: object
    ) -> list[Any]:
        """Call what answers with futures of threads, and await them."""
        futures = call(what, request_timeout=REQUEST_TIMEOUT_S, **more)
        return [await asyncio.wrap_future(each) for each in futures.values()]


def _quoted(octet: int) -> str:
    character = chr(octet)
    is_plain = character.isascii() and (character.isalnum() or character in "-.")
    return character if is_plain else f"_{octet:02X}"


def _ignore(error: KafkaError) -> None:
    """Take the client's complaints; whoever asks is answered."""
    del error
