"""A node between two in-memory links: what the conformance kit, and unit tests of nodes, run on."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Self

from cogwork.amqp.performatives import Flow, encode_performative
from cogwork.amqp.terminus import Source
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.core import Core
from cogwork.dataplane.encoding.codec import encode
from cogwork.dataplane.message.messages import Message
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.dataplane.transport.session_end import Session
from cogwork.dataplane.transport.wire import Wire
from cogwork.plugin.effects import Detach, Effect, Publish, Send, Settle
from cogwork.plugin.node import Departure, NodeContext, Subscription

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.transport.incoming import IncomingLink
    from cogwork.plugin.node import NodeFactory

__all__ = ("Loopback",)

TICK_S = 0.1
_WINDOW = 1 << 20


class Loopback:
    """Makes a node, sends to it, receives from it, and lets its time pass.

    Attributes:
        core: What the node and the links at its ends are made of.
        node: The node under test.
        outcomes: Numbers of the messages that were answered, in order.
        sent_on: What the node sent to other addresses.
        reports: What it told the log.
        detached: The links it ended, with the reason.
    """

    def __init__(
        self, factory: NodeFactory, address: str, options: Mapping[str, object] | None = None
    ) -> None:
        """Make the node.

        Args:
            factory: The node's class, or another factory.
            address: Its address.
            options: Its options.
        """
        self.core = Core()
        self._address = address
        self._port = Port(self.core, self)
        self._now_s = self.core.now
        self._count = 0
        self._receivers: list[tuple[Subscription, Wire, Session]] = []
        self.outcomes: list[int] = []
        self.sent_on: list[Send] = []
        self.reports: list[str] = []
        self.detached: list[Detach] = []
        self.node = factory(
            NodeContext(
                core=self.core,
                address=address,
                is_prefix=False,
                options=options or {},
                container_id="loopback",
                emit=self._carry_out,
            )
        )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the node."""
        self.close()

    def close(self) -> None:
        """Detach the receivers and close the node."""
        for subscription, _, _ in list(self._receivers):
            self.leave(subscription.link)
        self.node.close()
        self.core.flush()

    # -- the world around the node

    def send(self, count: int, body: object = "x", entry: AddressEntry | None = None) -> list[int]:
        """Send unsettled messages to the node, or to an entry; return their numbers."""
        numbers = list(range(self._count, self._count + count))
        self._count += count
        data = body.encode() if isinstance(body, Message) else Message(body).encode()
        to = self.node.entry(self._address) if entry is None else entry
        for number in numbers:
            to.send(self._port, number, data, settled=False)
        self.core.flush()
        return numbers

    def receive(self, credit: int, source: Source | None = None) -> OutgoingLink:
        """Attach a receiver with some credit; return the node's end of the link."""
        wire = Wire(self.core, self, _WINDOW)
        wire.max_frame_out = _WINDOW
        wire.start_framing()
        session = Session(wire, 0, 0, _WINDOW, _WINDOW)
        wire.map_session(0, session)
        link = OutgoingLink(session, 0)
        session.map_link(0, link)
        source = source or Source(address=self._address)
        subscription = Subscription(link=link, address=self._address, source=source)
        self.node.subscribe(subscription)
        self._receivers.append((subscription, wire, session))
        flow = Flow(
            next_incoming_id=0,
            incoming_window=_WINDOW,
            next_outgoing_id=0,
            outgoing_window=_WINDOW,
            handle=0,
            delivery_count=0,
            link_credit=credit,
        )
        body = encode_performative(flow, encode)
        wire.feed(struct.pack(">IBBH", len(body) + 8, 2, 0, 0) + body)
        return link

    def keep(self, link: OutgoingLink) -> Subscription:
        """Have a receiver go that may resume its link; `leave` says that it does not."""
        (entry,) = (each for each in self._receivers if each[0].link is link)
        entry[0].departure = Departure.KEPT
        self.node.unsubscribe(entry[0])
        entry[0].departure = Departure.ORDERLY
        return entry[0]

    def leave(self, link: OutgoingLink) -> None:
        """Detach a receiver."""
        for entry in list(self._receivers):
            if entry[0].link is link:
                self._receivers.remove(entry)
                self.node.unsubscribe(entry[0])
                link.detach()
        self.core.flush()

    def run(self, ticks: int) -> None:
        """Let time pass, a tenth of a second a tick."""
        for _ in range(ticks):
            self._now_s += TICK_S
            self._carry_out(self.node.tick(self._now_s))
            self.core.flush()

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.sent_on.append(effect)
                if effect.on_outcome is not None:
                    effect.on_outcome(accepted=True)
            elif isinstance(effect, Publish):
                effect.entry.send(self._port, 0, effect.message, settled=True)
            elif isinstance(effect, Settle):
                effect.source.settle(effect.token, effect.code, effect.state)
            elif isinstance(effect, Detach):
                self.detached.append(effect)
            else:
                self.reports.append(effect.text)

    # -- what the data plane tells this end

    def on_batch(self, port: Port) -> None:
        """Note outcomes."""
        self.outcomes += [token for token, _, _, _ in port.outcomes]
        port.outcomes.clear()

    def on_header(self, header: bytes) -> None:
        """Never happens: the wire starts with frames."""
        raise AssertionError(header)

    def on_rest(self, octets: bytes) -> None:
        """Never happens: there is no header."""
        raise AssertionError(octets)

    def on_frame(self, frame_type: int, channel: int, body: bytes) -> None:
        """Never happens: only flows are fed."""
        raise AssertionError((frame_type, channel, body))

    def on_lost(self, errno: int) -> None:
        """Never happens: there is no socket."""
        raise AssertionError(errno)

    def on_fault(self, error: Exception) -> None:
        """Let a test fail."""
        raise error

    def on_violation(self, condition: str, description: str) -> None:
        """Never happens: only flows are fed."""
        raise AssertionError((condition, description))

    def on_session_violation(self, session: Session, condition: str, description: str) -> None:
        """Never happens: only flows are fed."""
        raise AssertionError((session, condition, description))

    def on_link_violation(
        self, link: IncomingLink | OutgoingLink, condition: str, description: str
    ) -> None:
        """Never happens: only flows are fed."""
        raise AssertionError((link, condition, description))

    def on_sender_disposition(
        self, session: Session, first: int, last: int, settled: bool, state: bytes
    ) -> None:
        """Never happens: nothing is sent to this end."""
        raise AssertionError((session, first, last, settled, state))
