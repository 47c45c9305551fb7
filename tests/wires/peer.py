"""A client that is written with the reference codec alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from cogwork.amqp.frames import AMQP_HEADER, PROTOCOL_HEADER_BYTES, FrameReader, encode_frame
from cogwork.amqp.performatives import Begin, Close, Open, decode_performative, encode_performative

from .channel import WINDOW, Channel

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.frames import Frame
    from cogwork.amqp.performatives import Performative
    from cogwork.dataplane.connection import Connection

    from .links import Consumer, Publisher


Said = TypeVar("Said")


class Host(Protocol):
    """Where peers connect: a broker of these tests, or a whole container.

    Attributes:
        peers: All that connected.
        links: This side's ends of links, by name.
    """

    peers: list[Peer]
    links: dict[str, Any]

    def settle_down(self) -> None:
        """Let every peer hear what there is to hear."""

    def connect(self, **settings: Any) -> Connection:
        """Make the other side of a connection."""


class Peer:
    """A client with one session unless it begins more.

    Attributes:
        heard: Every performative that came, by channel, in order.
    """

    def __init__(
        self,
        broker: Host,
        *,
        max_frame_size: int = 65536,
        incoming_window: int = WINDOW,
        **settings: Any,
    ) -> None:
        self.broker = broker
        self.max_frame_size = max_frame_size
        self.incoming_window = incoming_window
        self.connection = broker.connect(**settings)
        self.wire = self.connection.wire
        self.connection.transport = self
        self.finished = False
        self.heard: list[tuple[int, Performative]] = []
        self.channels: dict[int, Channel] = {}
        self.reader = FrameReader(max_frame_size)
        self.header = b""
        self.split: Callable[[bytes], list[bytes]] = lambda data: [data]
        self.is_deaf = False
        broker.peers.append(self)

    def prefer(self) -> None:
        pass

    def read_rest(self) -> None:
        self.wire.read_rest()

    def finish(self, *, linger: bool = True) -> None:
        self.finished = True

    def greet(self) -> Self:
        self.feed(AMQP_HEADER)
        self.say(Open(container_id="peer", max_frame_size=self.max_frame_size))
        self.begin()
        return self

    def begin(self, channel: int = 0) -> Channel:
        self.channels[channel] = Channel(self, channel)
        self.say(
            Begin(next_outgoing_id=0, incoming_window=self.incoming_window, outgoing_window=WINDOW),
            channel=channel,
        )
        return self.channels[channel]

    @property
    def main(self) -> Channel:
        return self.channels[0]

    def publisher(self, address: str | None, **options: Any) -> Publisher:
        return self.main.publisher(address, **options)

    def consumer(self, address: str, credit: int = 0, **options: Any) -> Consumer:
        return self.main.consumer(address, credit, **options)

    # -- saying and hearing

    def feed(self, data: bytes) -> None:
        for piece in self.split(data):
            self.wire.feed(piece)
        self.broker.settle_down()

    def say(self, performative: Performative, payload: bytes = b"", channel: int = 0) -> None:
        self.feed(frame(performative, payload, channel))

    def vanish(self) -> None:
        """Lose the connection without a word."""
        self.connection.on_lost(104)
        self.broker.settle_down()

    def close(self) -> None:
        self.say(Close())

    def hear(self) -> bool:
        """Read what there is; return whether there was anything."""
        if self.is_deaf:
            return False
        data = self.take()
        self.read(data)
        return bool(data)

    def take(self) -> bytes:
        return self.wire.take_output()

    def read(self, data: bytes) -> None:
        if len(self.header) < PROTOCOL_HEADER_BYTES:
            cut = PROTOCOL_HEADER_BYTES - len(self.header)
            self.header += data[:cut]
            data = data[cut:]
        for each in self.reader.feed(data):
            if each.body:
                self.note(each)

    def note(self, heard: Frame) -> None:
        performative, at = decode_performative(heard.body)
        self.heard.append((heard.channel, performative))
        if heard.channel in self.channels and not isinstance(performative, (Open, Close, Begin)):
            self.channels[heard.channel].note(performative, heard.body[at:])

    def of(self, kind: type[Said]) -> list[Said]:
        """List what was heard of one kind of performative."""
        return [each for _, each in self.heard if type(each) is kind]

    @property
    def close_error(self) -> AmqpError | None:
        closes = self.of(Close)
        assert closes, "the connection was not closed"
        error: AmqpError | None = closes[-1].error
        return error


def frame(performative: Performative, payload: bytes = b"", channel: int = 0) -> bytes:
    return encode_frame(channel, encode_performative(performative) + payload)
