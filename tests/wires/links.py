"""Links of a peer: on one it sends, on the other it receives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cogwork.amqp.outcomes import Accepted
from cogwork.amqp.performatives import MAX_UINT, Attach, Detach, Disposition, Flow, Role, Transfer

if TYPE_CHECKING:
    from cogwork.amqp.outcomes import DeliveryState

    from .channel import Channel


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


@dataclass(eq=False)
class Publisher:
    """A link on which the peer sends.

    Attributes:
        credit: What the broker granted and was not used.
        knows_drain: Whether it uses its credit up where the broker asks for that.
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
    knows_drain: bool = True

    @property
    def credit(self) -> int:
        left = self.limit - self.delivery_count & MAX_UINT
        return left if left <= MAX_UINT // 2 else 0

    @property
    def end(self) -> Any:
        """The broker's end, of whichever class."""
        return self.channel.peer.broker.links[self.name]

    def send(
        self, body: bytes = b"message", *, settled: bool = False, pieces: int = 1, **fields: Any
    ) -> int:
        """Send a message, in several transfers where asked; return its delivery-id."""
        size = -(-len(body) // pieces) if body else 0
        delivery_id = self.start(body[:size], settled=settled, more=pieces > 1, **fields)
        for number in range(1, pieces):
            piece = body[number * size : (number + 1) * size]
            self.more(piece, more=number < pieces - 1)
        return delivery_id

    def send_at_once(self, bodies: list[bytes], *, settled: bool = False) -> list[int]:
        """Send messages in a single batch of bytes; return their delivery-ids."""
        said: list[bytes] = []
        peer = self.channel.peer

        def hold(data: bytes) -> list[bytes]:
            said.append(data)
            return []

        peer.split = hold
        sent = [self.send(body, settled=settled) for body in bodies]
        peer.split = lambda data: [data]
        peer.feed(b"".join(said))
        return sent

    def start(
        self, piece: bytes, *, settled: bool = False, more: bool = True, **fields: Any
    ) -> int:
        channel = self.channel
        delivery_id = channel.next_delivery_id
        channel.next_delivery_id = delivery_id + 1 & MAX_UINT
        self.delivery_count += 1
        if not settled:
            self.sent.add(delivery_id)
        values: dict[str, Any] = {
            "handle": self.handle,
            "delivery_id": delivery_id,
            "delivery_tag": delivery_id.to_bytes(4, "big"),
            "settled": settled,
            "more": more,
        }
        channel.next_outgoing_id += 1
        channel.say(Transfer(**(values | fields)), piece)
        return delivery_id

    def more(self, piece: bytes = b"", *, more: bool = True, **fields: Any) -> None:
        self.channel.next_outgoing_id += 1
        self.channel.say(Transfer(handle=self.handle, more=more, **fields), piece)

    def abort(self) -> None:
        self.more(more=False, aborted=True)

    def detach(self, *, closed: bool = True) -> None:
        self.channel.say(Detach(handle=self.handle, closed=closed))

    def on_flow(self, flow: Flow) -> None:
        self.flows.append(flow)
        self.limit = (flow.delivery_count or 0) + (flow.link_credit or 0)
        if flow.drain and self.knows_drain:
            self.delivery_count += self.credit
            self.channel.flow(
                handle=self.handle, delivery_count=self.delivery_count, link_credit=0, drain=True
            )

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
    def end(self) -> Any:
        """The broker's end, of whichever class."""
        return self.channel.peer.broker.links[self.name]

    @property
    def bodies(self) -> list[bytes]:
        return [each.body for each in self.arrivals if each.complete]

    @property
    def last(self) -> Arrival:
        return self.arrivals[-1]

    def flow(self, credit: int, **fields: Any) -> None:
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
