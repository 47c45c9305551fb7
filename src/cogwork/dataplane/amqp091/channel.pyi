from typing import Protocol

from cogwork.dataplane.addresses.entry import AddressEntry
from cogwork.dataplane.amqp091.wire import BasicWire
from cogwork.dataplane.core import Core
from cogwork.dataplane.transport.consumer_end import ConsumerEnd
from cogwork.dataplane.transport.ends import ReceivingEnd

SOURCE_HASH: str

class BasicChannelOwner(Protocol):
    """Hears what became of the messages that were published on a channel."""

    def on_outcomes(self, outcomes: list[tuple[int, int, bytes | None]]) -> None: ...

class BasicConsumer(ConsumerEnd):
    message_count: int
    def __init__(
        self,
        channel: BasicChannel,
        tag: bytes,
        *,
        no_ack: bool = False,
        prefetch: int = 0,
        is_get: bool = False,
    ) -> None: ...
    @property
    def channel(self) -> BasicChannel: ...
    @property
    def tag(self) -> bytes: ...
    @property
    def prefetch(self) -> int: ...
    @property
    def is_get(self) -> bool: ...
    @property
    def is_cancelled(self) -> bool: ...
    def detach(self) -> None: ...

class BasicChannel(ReceivingEnd):
    prefetch: int
    is_stopped: bool
    def __init__(self, wire: BasicWire, number: int, owner: BasicChannelOwner) -> None: ...
    @property
    def core(self) -> Core: ...
    @property
    def wire(self) -> BasicWire: ...
    @property
    def last_tag(self) -> int: ...
    def publish(
        self,
        entry: AddressEntry,
        exchange: bytes,
        key: bytes,
        properties: bytes,
        body: bytes,
        *,
        token: int = 0,
    ) -> int: ...
    def publish_message(self, entry: AddressEntry, message: bytes, *, token: int = 0) -> int: ...
    def consumer(
        self, tag: bytes, *, no_ack: bool = False, prefetch: int = 0, no_local: bool = False
    ) -> BasicConsumer: ...
    def get(self, *, no_ack: bool = False) -> BasicConsumer: ...
    def acknowledge(
        self, delivery_tag: int, multiple: bool, code: int, state: bytes | None = None
    ) -> int: ...
    def requeue(self, delivery_tag: int, multiple: bool) -> int: ...
    def recover(self) -> int: ...
    def close(self) -> None: ...
