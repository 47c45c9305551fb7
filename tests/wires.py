"""A broker in memory and peers that speak to it frame by frame: no socket, no clock, no event loop.

Theory of operation. `Broker` is the least host that the data plane needs: addresses by prefix
(`all/` multicast, `one/` closest, `least/` balanced, `whole/` closest and assembled for a node),
every attach accepted. A `Peer` is a client written with the reference codec alone, so whatever the
compiled code writes is read by something else. What a peer says is fed to its wire, then every peer
hears what its own wire has to say: each event of a test crosses two wires.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.frames import AMQP_HEADER, PROTOCOL_HEADER_BYTES, FrameReader, encode_frame
from cogwork.amqp.outcomes import Accepted
from cogwork.amqp.performatives import (
    MAX_UINT,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    ReceiverSettleMode,
    Role,
    SenderSettleMode,
    Transfer,
    decode_performative,
    encode_performative,
)
from cogwork.amqp.terminus import Source, Target
from cogwork.dataplane.connection import Connection, ConnectionSettings
from cogwork.dataplane.core import Core
from cogwork.dataplane.entry import BALANCED_CODE, CLOSEST_CODE, MULTICAST_CODE, AddressEntry
from cogwork.dataplane.incoming import IncomingLink
from cogwork.dataplane.outgoing import OutgoingLink
from cogwork.dataplane.port import Port
from cogwork.dataplane.space import AddressSpace

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.frames import Frame
    from cogwork.amqp.outcomes import DeliveryState
    from cogwork.amqp.performatives import Performative
    from cogwork.amqp.sasl import SaslInit, SaslResponse
    from cogwork.amqp.types import Symbol
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint
    from cogwork.dataplane.session_end import Session
    from cogwork.dataplane.terminus import Terminus

WINDOW = 1 << 20
DISTRIBUTIONS = {"all": MULTICAST_CODE, "one": CLOSEST_CODE, "least": BALANCED_CODE}
BLOCK, DROP_OLDEST, DETACH = range(3)


class Broker:
    """A host that accepts everything.

    Attributes:
        core: Its data plane.
        links: The compiled ends of what is attached, by link name.
        faults: What went wrong on our side; tests want none.
        closed: Why connections ended, in order.
        taken: Messages that arrived at `whole/` addresses: `(message, token, source, settled)`.
    """

    def __init__(self, *, window: int = 100, max_message_size: int = 0) -> None:
        self.core = Core(lambda _port, error: self.faults.append(error))
        self.space = AddressSpace(self.core, self._resolve)
        self.window = window
        self.max_message_size = max_message_size
        self.policy = BLOCK
        self.backlog_bytes_max = 1 << 20
        self.selector: Callable[[bytes], bool] | None = None
        self.no_local = False
        self.peers: list[Peer] = []
        self.links: dict[str, IncomingLink | OutgoingLink] = {}
        self.faults: list[BaseException] = []
        self.closed: list[AmqpError | None] = []
        self.drained: list[object] = []
        self.node = Port(self.core, self)
        self.taken: list[tuple[bytes, int, Terminus, bool]] = []

    def entry(self, address: str) -> AddressEntry:
        found = self.space.entries.get(address.encode())
        if found is None:
            prefix = address.partition("/")[0]
            found = AddressEntry(self.core, address, DISTRIBUTIONS.get(prefix, CLOSEST_CODE))
            if prefix == "whole":
                found.add_outlet(self.node)
            self.space.entries[address.encode()] = found
        return found

    def _resolve(self, address: bytes) -> AddressEntry | None:
        return None if address.startswith(b"nowhere") else self.entry(address.decode())

    def peer(self, **settings: object) -> Peer:
        """Connects a peer; it has opened and begun a session."""
        peer = Peer(self, **settings)
        peer.greet()
        return peer

    def connect(self, **settings: object) -> Connection:
        """Makes this side of a connection; `fd` is a socket's, all else is a setting."""
        fd = settings.pop("fd", -1)
        return Connection(
            self.core, self, ConnectionSettings(**{"max_frame_size_bytes": 65536, **settings}), fd
        )

    def settle_down(self) -> None:
        """Lets every peer hear what there is to hear."""
        self.core.flush()
        while sum(peer.hear() for peer in self.peers):
            self.core.flush()
        assert not self.faults, self.faults

    def assert_clean(self) -> None:
        """Asserts that nothing is left of what was held or unsettled."""
        self.core.flush()
        assert self.core.held_bytes == 0
        assert self.core.held_deliveries == 0
        assert self.core.open_fanouts == 0
        for entry in self.space.entries.values():
            assert entry.held == 0, entry.name

    # -- the data plane's host

    def on_batch(self, port: Port) -> None:
        self.taken += port.arrivals
        port.arrivals = []
        port.outcomes = []
        port.woken = []

    def sasl_mechanisms(self, connection: Connection) -> tuple[Symbol, ...]:
        return ()

    def authenticate(self, connection: Connection, frame: SaslInit | SaslResponse) -> None:
        raise AssertionError(frame)

    def may_skip_sasl(self, connection: Connection) -> bool:
        return True

    def sasl_init(self, connection: Connection, offered: tuple[Symbol, ...]) -> SaslInit:
        raise AssertionError(offered)

    def on_open(self, connection: Connection, opened: Open) -> None:
        connection.open(Open(container_id="broker", max_frame_size=connection.wire.max_frame_in))

    def on_attach(self, link: Link, attach: Attach) -> None:
        terminus = attach.target if attach.role is Role.SENDER else attach.source
        address = getattr(terminus, "address", None)
        if address is not None and address.startswith("forbidden"):
            link.refuse(Condition.UNAUTHORIZED_ACCESS, f"{address} is forbidden")
        elif attach.role is Role.SENDER:
            self._take_publisher(link, attach, address)
        else:
            self._take_consumer(link, attach, address or "")

    def _take_publisher(self, link: Link, attach: Attach, address: str | None) -> None:
        entry = self.entry(address) if address is not None else None
        end = self.publisher_end(link, address, entry)
        end.settles_second = attach.rcv_settle_mode is ReceiverSettleMode.SECOND
        link.attach(
            source=attach.source, target=attach.target, rcv_settle_mode=attach.rcv_settle_mode
        )
        link.carry(end)
        if entry is not None:
            entry.add_source(end)
        end.open_credit()
        self.links[link.name] = end

    def publisher_end(
        self, link: Link, _address: str | None, entry: AddressEntry | None
    ) -> IncomingLink:
        """Makes the compiled end of a link on which a peer sends."""
        return IncomingLink(
            link.session.end, link.handle, entry, self.space, self.window, self.max_message_size
        )

    def _take_consumer(self, link: Link, attach: Attach, address: str) -> None:
        end = OutgoingLink(
            link.session.end, link.handle, attach.snd_settle_mode is SenderSettleMode.SETTLED
        )
        end.policy = self.policy
        end.backlog_bytes_max = self.backlog_bytes_max
        end.selector = self.selector
        end.no_local = self.no_local
        link.context = self.entry(address)
        link.attach(
            source=attach.source, target=attach.target, snd_settle_mode=attach.snd_settle_mode
        )
        link.carry(end)
        link.context.add_outlet(end)
        self.links[link.name] = end

    def on_attached(self, link: Link) -> None:
        raise AssertionError(link)

    def on_stopping(self, link: Link) -> None:
        if isinstance(link.context, AddressEntry):
            link.context.remove_outlet(link.end)
            link.context = None

    def on_detached(self, link: Link, error: AmqpError | None, *, closed: bool) -> None:
        self.links.pop(link.name, None)

    def on_session_begun(self, session: SessionEndpoint) -> None:
        pass

    def on_session_ended(self, session: SessionEndpoint, error: AmqpError | None) -> None:
        pass

    def on_closed(self, connection: Connection, error: AmqpError | None) -> None:
        self.closed.append(error)

    def on_fault(self, connection: Connection, error: BaseException) -> None:
        self.faults.append(error)

    def on_settled_by_sender(
        self, session: Session, first: int, last: int, state: bytes, *, settled: bool
    ) -> None:
        pass

    def on_drained(self, link: Link) -> None:
        self.drained.append(link)


@dataclass
class Arrival:
    """A delivery as a consumer sees it."""

    id: int
    tag: bytes
    body: bytes
    settled: bool
    format: int | None = None
    frames: int = 1
    complete: bool = False
    aborted: bool = False


class Peer:
    """A client with one session unless it begins more.

    Attributes:
        heard: Every performative that came, by channel, in order.
    """

    def __init__(
        self,
        broker: Broker,
        *,
        max_frame_size: int = 65536,
        incoming_window: int = WINDOW,
        **settings: object,
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

    def finish(self, *, linger: bool = True) -> None:
        self.finished = True

    def greet(self) -> Peer:
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

    def publisher(self, address: str | None, **options: object) -> Publisher:
        return self.main.publisher(address, **options)

    def consumer(self, address: str, credit: int = 0, **options: object) -> Consumer:
        return self.main.consumer(address, credit, **options)

    # -- saying and hearing

    def feed(self, data: bytes) -> None:
        for piece in self.split(data):
            self.wire.feed(piece)
        self.broker.settle_down()

    def say(self, performative: Performative, payload: bytes = b"", channel: int = 0) -> None:
        self.feed(frame(performative, payload, channel))

    def vanish(self) -> None:
        """Loses the connection without a word."""
        self.connection.on_lost(104)
        self.broker.settle_down()

    def close(self) -> None:
        self.say(Close())

    def hear(self) -> bool:
        """Reads what there is; returns whether there was anything."""
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

    def of(self, kind: type[object]) -> list[object]:
        """Lists what was heard of one kind of performative."""
        return [each for _, each in self.heard if type(each) is kind]

    @property
    def close_error(self) -> AmqpError | None:
        closes = self.of(Close)
        assert closes, "the connection was not closed"
        error: AmqpError | None = closes[-1].error
        return error


def frame(performative: Performative, payload: bytes = b"", channel: int = 0) -> bytes:
    return encode_frame(channel, encode_performative(performative) + payload)


class Channel:
    """A session as its client sees it."""

    def __init__(self, peer: Peer, number: int) -> None:
        self.peer = peer
        self.number = number
        self.next_delivery_id = 0
        self.next_outgoing_id = 0
        self.next_incoming_id = 0
        self.window: int | None = None
        self.links: list[Publisher | Consumer] = []
        self.ended: End | None = None

    def say(self, performative: Performative, payload: bytes = b"") -> None:
        self.peer.say(performative, payload, self.number)

    def publisher(
        self,
        address: str | None,
        *,
        name: str | None = None,
        rcv_settle_mode: ReceiverSettleMode = ReceiverSettleMode.FIRST,
        delivery_count: int = 0,
    ) -> Publisher:
        link = Publisher(self, len(self.links), address, delivery_count=delivery_count)
        self._attach(
            link,
            Attach(
                name=name or f"out-{id(self)}-{link.handle}",
                handle=link.handle,
                role=Role.SENDER,
                rcv_settle_mode=rcv_settle_mode,
                source=Source(),
                target=Target(address=address),
                initial_delivery_count=delivery_count,
            ),
        )
        return link

    def consumer(
        self,
        address: str,
        credit: int = 0,
        *,
        name: str | None = None,
        presettled: bool = False,
    ) -> Consumer:
        link = Consumer(self, len(self.links), address)
        mode = SenderSettleMode.SETTLED if presettled else SenderSettleMode.MIXED
        self._attach(
            link,
            Attach(
                name=name or f"in-{id(self)}-{link.handle}",
                handle=link.handle,
                role=Role.RECEIVER,
                snd_settle_mode=mode,
                source=Source(address=address),
                target=Target(),
            ),
        )
        if credit:
            link.flow(credit)
        return link

    def _attach(self, link: Publisher | Consumer, attach: Attach) -> None:
        self.links.append(link)
        link.name = attach.name
        self.say(attach)

    def end(self) -> None:
        self.say(End())

    def flow(self, **fields: object) -> None:
        """Says the session's state."""
        values: dict[str, object] = {
            "next_incoming_id": self.next_incoming_id,
            "incoming_window": self.peer.incoming_window,
            "next_outgoing_id": self.next_outgoing_id,
            "outgoing_window": WINDOW,
        }
        self.say(Flow(**(values | fields)))

    def settle(
        self,
        first: int,
        last: int | None = None,
        state: DeliveryState | None = None,
        *,
        settled: bool = True,
        role: Role = Role.RECEIVER,
    ) -> None:
        self.say(Disposition(role=role, first=first, last=last, settled=settled, state=state))

    # -- what is heard on it

    def note(self, performative: Performative, payload: bytes) -> None:
        if isinstance(performative, Transfer):
            self.next_incoming_id += 1
            self._by_remote(performative.handle).on_transfer(performative, payload)
        elif isinstance(performative, Attach):
            self._on_attach(performative)
        elif isinstance(performative, Flow):
            self.window = performative.incoming_window
            if performative.handle is not None:
                self._by_remote(performative.handle).on_flow(performative)
        elif isinstance(performative, Disposition):
            self._on_disposition(performative)
        elif isinstance(performative, Detach):
            for link in self.links:
                if link.remote_handle == performative.handle:
                    link.detached = performative
        elif isinstance(performative, End):
            self.ended = performative

    def _on_attach(self, attach: Attach) -> None:
        for link in self.links:
            if link.name == attach.name:
                link.remote_handle = attach.handle
                link.attach = attach

    def _by_remote(self, handle: int) -> Publisher | Consumer:
        return next(each for each in reversed(self.links) if each.remote_handle == handle)

    def _on_disposition(self, disposition: Disposition) -> None:
        last = disposition.first if disposition.last is None else disposition.last
        for delivery_id in range(disposition.first, last + 1):
            for link in self.links:
                link.on_disposition(disposition, delivery_id)


@dataclass(eq=False)
class Publisher:
    """A link on which the peer sends.

    Attributes:
        credit: What the broker granted and was not used.
        outcomes: What became of each delivery; settled ones have none.
        answers: How often each was answered.
    """

    channel: Channel
    handle: int
    address: str | None
    name: str = ""
    remote_handle: int | None = None
    attach: Attach | None = None
    detached: Detach | None = None
    delivery_count: int = 0
    limit: int = 0
    sent: set[int] = field(default_factory=set)
    outcomes: dict[int, DeliveryState | None] = field(default_factory=dict)
    answers: dict[int, int] = field(default_factory=dict)
    flows: list[Flow] = field(default_factory=list)

    @property
    def credit(self) -> int:
        left = self.limit - self.delivery_count & MAX_UINT
        return left if left <= MAX_UINT // 2 else 0

    @property
    def end(self) -> IncomingLink | OutgoingLink:
        return self.channel.peer.broker.links[self.name]

    def send(
        self, body: bytes = b"message", *, settled: bool = False, pieces: int = 1, **fields: object
    ) -> int:
        """Sends a message, in several transfers where asked; returns its delivery-id."""
        size = -(-len(body) // pieces) if body else 0
        delivery_id = self.start(body[:size], settled=settled, more=pieces > 1, **fields)
        for number in range(1, pieces):
            piece = body[number * size : (number + 1) * size]
            self.more(piece, more=number < pieces - 1)
        return delivery_id

    def send_at_once(self, bodies: list[bytes], *, settled: bool = False) -> list[int]:
        """Sends messages in a single batch of bytes; returns their delivery-ids."""
        said: list[bytes] = []
        peer = self.channel.peer
        peer.split = lambda data: said.append(data) or []
        sent = [self.send(body, settled=settled) for body in bodies]
        peer.split = lambda data: [data]
        peer.feed(b"".join(said))
        return sent

    def start(
        self, piece: bytes, *, settled: bool = False, more: bool = True, **fields: object
    ) -> int:
        channel = self.channel
        delivery_id = channel.next_delivery_id
        channel.next_delivery_id = delivery_id + 1 & MAX_UINT
        self.delivery_count += 1
        if not settled:
            self.sent.add(delivery_id)
        values: dict[str, object] = {
            "handle": self.handle,
            "delivery_id": delivery_id,
            "delivery_tag": delivery_id.to_bytes(4, "big"),
            "settled": settled,
            "more": more,
        }
        channel.next_outgoing_id += 1
        channel.say(Transfer(**(values | fields)), piece)
        return delivery_id

    def more(self, piece: bytes = b"", *, more: bool = True, **fields: object) -> None:
        self.channel.next_outgoing_id += 1
        self.channel.say(Transfer(handle=self.handle, more=more, **fields), piece)

    def abort(self) -> None:
        self.more(more=False, aborted=True)

    def detach(self, *, closed: bool = True) -> None:
        self.channel.say(Detach(handle=self.handle, closed=closed))

    def on_flow(self, flow: Flow) -> None:
        self.flows.append(flow)
        self.limit = (flow.delivery_count or 0) + (flow.link_credit or 0)

    def on_disposition(self, disposition: Disposition, delivery_id: int) -> None:
        if disposition.role is Role.RECEIVER and delivery_id in self.sent:
            self.outcomes[delivery_id] = disposition.state
            self.answers[delivery_id] = self.answers.get(delivery_id, 0) + 1

    def on_transfer(self, transfer: Transfer, payload: bytes) -> None:
        raise AssertionError("a transfer to a sender")


@dataclass(eq=False)
class Consumer:
    """A link on which the peer receives.

    Attributes:
        arrivals: Every delivery, also what is incomplete or was aborted.
    """

    channel: Channel
    handle: int
    address: str
    name: str = ""
    remote_handle: int | None = None
    attach: Attach | None = None
    detached: Detach | None = None
    arrivals: list[Arrival] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    confirmed: dict[int, Disposition] = field(default_factory=dict)
    delivery_count: int = 0

    @property
    def end(self) -> IncomingLink | OutgoingLink:
        return self.channel.peer.broker.links[self.name]

    @property
    def bodies(self) -> list[bytes]:
        return [each.body for each in self.arrivals if each.complete]

    @property
    def last(self) -> Arrival:
        return self.arrivals[-1]

    def flow(self, credit: int, **fields: object) -> None:
        self.channel.flow(
            handle=self.handle, delivery_count=self.delivery_count, link_credit=credit, **fields
        )

    def accept(self, arrival: Arrival | None = None) -> None:
        self.channel.settle((arrival or self.last).id, state=Accepted())

    def accept_all(self) -> None:
        for each in self.arrivals:
            if each.complete and not each.settled:
                self.accept(each)
                each.settled = True

    def settle(self, state: DeliveryState | None, *, settled: bool = True) -> None:
        self.channel.settle(self.last.id, state=state, settled=settled)

    def detach(self, *, closed: bool = True) -> None:
        self.channel.say(Detach(handle=self.handle, closed=closed))

    def on_flow(self, flow: Flow) -> None:
        self.flows.append(flow)
        self.delivery_count = flow.delivery_count or 0

    def on_disposition(self, disposition: Disposition, delivery_id: int) -> None:
        if disposition.role is Role.SENDER and any(a.id == delivery_id for a in self.arrivals):
            self.confirmed[delivery_id] = disposition

    def on_transfer(self, transfer: Transfer, payload: bytes) -> None:
        open_one = self.arrivals[-1] if self.arrivals else None
        if open_one is None or open_one.complete or open_one.aborted:
            assert transfer.delivery_id is not None, "a delivery begins without a delivery-id"
            self.delivery_count += 1
            open_one = Arrival(
                transfer.delivery_id,
                transfer.delivery_tag or b"",
                b"",
                bool(transfer.settled),
                transfer.message_format,
                frames=0,
            )
            self.arrivals.append(open_one)
        else:
            assert transfer.delivery_id in (None, open_one.id)
        open_one.frames += 1
        open_one.body += payload
        open_one.aborted = transfer.aborted
        open_one.complete = not transfer.more and not transfer.aborted
