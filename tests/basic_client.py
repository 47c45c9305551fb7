"""A connection of AMQP 0-9-1 at a core, without a socket: what it publishes, and what it gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp091.assembler import Assembler, Command
from cogwork.amqp091.content import BasicProperties, decode_properties, encode_properties
from cogwork.amqp091.frames import FrameReader
from cogwork.amqp091.methods import BasicDeliver, BasicGetOk
from cogwork.amqp091.strings import octets_of
from cogwork.dataplane.amqp091.channel import BasicChannel, BasicConsumer
from cogwork.dataplane.amqp091.wire import BasicWire

if TYPE_CHECKING:
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.queue.store import Store

ACCEPTED, REJECTED, RELEASED = 0x24, 0x25, 0x26
FRAME_MAX = 4096


class Arrival(NamedTuple):
    """A message that was delivered, or got."""

    tag: int
    redelivered: bool
    exchange: str
    key: str
    properties: BasicProperties
    body: bytes
    consumer_tag: str | None
    message_count: int | None

    @property
    def text(self) -> str:
        return self.body.decode()


class BasicClient:
    """One connection with one channel; the owner of both."""

    def __init__(self, core: Core, frame_max: int = FRAME_MAX) -> None:
        self.core = core
        self.wire = BasicWire(core, self)
        self.wire.max_frame_out = frame_max
        self.channel = BasicChannel(self.wire, 1, self)
        self.outcomes: list[tuple[int, int, bytes | None]] = []
        self.frames: list[bytes] = []
        self.closes_channel = False
        self.faults: list[Exception] = []
        self.violations: list[str] = []
        self.backlogs: list[bool] = []
        self.frame_max = frame_max
        self._reader = FrameReader(frame_max)
        self._assembler = Assembler(1 << 30)

    # -- what owners hear

    def on_outcomes(self, outcomes: list[tuple[int, int, bytes | None]]) -> None:
        self.outcomes += outcomes

    def on_frames(self, octets: bytes) -> None:
        self.frames.append(octets)
        if self.closes_channel:
            self.channel.close()

    def on_lost(self, errno: int) -> None:
        self.faults.append(OSError(errno))

    def on_fault(self, error: Exception) -> None:
        self.faults.append(error)

    def on_violation(self, condition: str, description: str) -> None:
        self.violations.append(f"{condition}: {description}")

    def on_backlog(self, is_large: bool) -> None:
        self.backlogs.append(is_large)

    # -- what a client does

    def publish(
        self,
        entry: AddressEntry,
        body: bytes,
        *,
        exchange: str = "",
        key: str = "a",
        token: int = 0,
        properties: BasicProperties | None = None,
    ) -> int:
        encoded = encode_properties(properties or BasicProperties())
        code = self.channel.publish(
            entry, octets_of(exchange), octets_of(key), encoded, body, token=token
        )
        self.core.flush()
        return code

    def consume(
        self, store: Store, tag: bytes = b"c", *, no_ack: bool = False, prefetch: int = 0
    ) -> BasicConsumer:
        consumer = self.channel.consumer(tag, no_ack=no_ack, prefetch=prefetch)
        store.add_consumer(consumer)
        self.core.flush()
        return consumer

    def get(self, store: Store, *, no_ack: bool = False) -> Arrival | None:
        consumer = self.channel.get(no_ack=no_ack)
        consumer.message_count = max(store.waiting - 1, 0)
        store.add_consumer(consumer)
        store.remove_consumer(consumer)
        consumer.detach()
        found = self.take()
        return found[0] if found else None

    def settle(self, tag: int, *, multiple: bool = False, code: int = ACCEPTED) -> int:
        count = self.channel.acknowledge(tag, multiple, code)
        self.core.flush()
        return count

    def requeue(self, tag: int, *, multiple: bool = False) -> int:
        count = self.channel.requeue(tag, multiple)
        self.core.flush()
        return count

    def commands(self) -> list[Command]:
        """Return what has been written to the client since the last call."""
        self.core.flush()
        found = []
        for frame in self._reader.feed(self.wire.take_output()):
            assert len(frame.payload) + 8 <= self.frame_max
            command = self._assembler.feed(frame)
            if command is not None:
                found.append(command)
        return found

    def take(self) -> list[Arrival]:
        """Return what has been delivered since the last call."""
        found = []
        for method, content in self.commands():
            assert isinstance(method, BasicDeliver | BasicGetOk)
            assert content is not None
            found.append(
                Arrival(
                    method.delivery_tag,
                    method.redelivered,
                    method.exchange,
                    method.routing_key,
                    decode_properties(content.property_octets),
                    bytes(content.body),
                    method.consumer_tag if isinstance(method, BasicDeliver) else None,
                    method.message_count if isinstance(method, BasicGetOk) else None,
                )
            )
        return found
