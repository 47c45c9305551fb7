"""Peers of the data plane in memory: what a client would say, and what it hears."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp.frames import FrameReader, encode_frame
from cogwork.amqp.outcomes import Accepted
from cogwork.amqp.performatives import (
    Disposition,
    Flow,
    Role,
    Transfer,
    decode_performative,
    encode_performative,
)
from cogwork.dataplane.transport.incoming import IncomingLink
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.dataplane.transport.session_end import Session
from cogwork.dataplane.transport.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.outcomes import DeliveryState
    from cogwork.amqp.performatives import Performative
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.queue.store import Store

WINDOW = 1 << 20


class Tag(NamedTuple):
    """A delivery-tag's parts."""

    shard: int
    item: int
    attempt: int


class Arrival(NamedTuple):
    """A delivery as a client sees it."""

    handle: int
    delivery_id: int
    tag: bytes
    message: bytes
    settled: bool

    @property
    def parts(self) -> Tag:
        assert len(self.tag) == 16
        return Tag(*(int.from_bytes(self.tag[a:b], "big") for a, b in ((0, 4), (4, 12), (12, 16))))


class Peer:
    """A client with one session: its links, and everything that was said to it."""

    def __init__(self, core: Core, frame_size: int = 65536, window: int = WINDOW) -> None:
        self.core = core
        self.window = window
        self.wire = Wire(core, self, 65536)
        self.wire.start_framing()
        self.wire.max_frame_out = frame_size
        self.session = Session(self.wire, 0, 0, window, WINDOW)
        self.wire.map_session(0, self.session)
        self.arrivals: list[Arrival] = []
        self.dispositions: list[Disposition] = []
        self.flows: list[Flow] = []
        self.lost: list[int] = []
        self._reader = FrameReader(65536)
        self._sent = 0
        self._publishers = 0
        self._partial: Arrival | None = None
        self._links: dict[int, OutgoingLink] = {}

    # -- attach, and go

    def publisher(self, entry: AddressEntry, window: int = 1000) -> IncomingLink:
        handle = self._publishers
        self._publishers += 1
        link = IncomingLink(self.session, handle, entry, None, window)
        self.session.map_link(handle, link)
        entry.add_source(link)
        link.open_credit()
        self.core.flush()
        return link

    def consumer(
        self,
        store: Store,
        credit: int = 0,
        *,
        presettles: bool = False,
        selector: Callable[[bytes], bool] | None = None,
        **options: bool,
    ) -> OutgoingLink:
        handle = len(self._links) + 100
        link = OutgoingLink(self.session, handle, presettles)
        link.selector = selector
        self.session.map_link(handle, link)
        self._links[handle] = link
        store.add_consumer(link, **options)
        if credit:
            self.flow(link, credit)
        return link

    def detach(self, store: Store, link: OutgoingLink) -> None:
        """Detach as the container does: the node first, then the compiled half."""
        store.remove_consumer(link)
        link.detach()
        self.core.flush()

    def end(self, store: Store, link: OutgoingLink, code: int = 0) -> None:
        """Close a link in order; `code` is its source's default outcome, where it names one."""
        store.end_consumer(link, code)
        link.detach()
        self.core.flush()

    def leave(self, store: Store, link: OutgoingLink) -> int:
        """Detach a link to resume it; return what the store knows it by."""
        serial = store.keep_consumer(link)
        link.leave()
        self.core.flush()
        return serial

    def vanish(self, store: Store) -> None:
        """Lose the connection."""
        links = [link for link in self._links.values() if not link.detached]
        for link in links:
            store.remove_consumer(link)
            link.detach()
        self.session.end()
        self.wire.stop()
        self.core.flush()

    # -- what the client says

    def say(self, performative: Performative, payload: bytes = b"") -> None:
        self.wire.feed(encode_frame(0, encode_performative(performative) + payload))
        self.hear()

    def send(self, link: IncomingLink, message: bytes, *, settled: bool = False) -> int:
        """Send a message; return its delivery-id."""
        return self.send_run(link, [message], settled=settled)

    def send_run(self, link: IncomingLink, messages: list[bytes], *, settled: bool = False) -> int:
        """Send messages that arrive as one piece of input; return the first delivery-id."""
        first = self._sent
        self._sent += len(messages)
        frames = []
        for delivery_id, message in enumerate(messages, first):
            transfer = Transfer(
                handle=link.handle,
                delivery_id=delivery_id,
                delivery_tag=delivery_id.to_bytes(4, "big"),
                settled=settled,
            )
            frames.append(encode_frame(0, encode_performative(transfer) + message))
        self.wire.feed(b"".join(frames))
        self.hear()
        return first

    def flow(self, link: OutgoingLink, credit: int, *, drain: bool = False) -> None:
        self.say(
            Flow(
                next_incoming_id=self.session.next_outgoing_id,
                incoming_window=self.window,
                next_outgoing_id=self._sent,
                outgoing_window=WINDOW,
                handle=link.handle,
                delivery_count=link.delivery_count,
                link_credit=credit,
                drain=drain,
            )
        )

    def settle(
        self,
        first: Arrival | int,
        state: DeliveryState | None = None,
        *,
        last: Arrival | int | None = None,
        settled: bool = True,
    ) -> None:
        """Say an outcome; accepted where none is given."""
        first_id = first.delivery_id if isinstance(first, Arrival) else first
        last_id = last.delivery_id if isinstance(last, Arrival) else last
        self.say(
            Disposition(
                role=Role.RECEIVER,
                first=first_id,
                last=last_id,
                settled=settled,
                state=Accepted() if state is None else state,
            )
        )

    # -- what it hears

    def hear(self) -> None:
        """Read what was sent to the client."""
        for frame in self._reader.feed(self.wire.take_output()):
            performative, at = decode_performative(frame.body)
            if isinstance(performative, Transfer):
                self._on_transfer(performative, frame.body[at:])
            elif isinstance(performative, Disposition):
                self.dispositions.append(performative)
            elif isinstance(performative, Flow):
                self.flows.append(performative)

    def _on_transfer(self, transfer: Transfer, payload: bytes) -> None:
        if self._partial is None:
            self._partial = Arrival(
                transfer.handle,
                transfer.delivery_id or 0,
                transfer.delivery_tag or b"",
                payload,
                bool(transfer.settled),
            )
        else:
            self._partial = self._partial._replace(message=self._partial.message + payload)
        if not transfer.more:
            if not transfer.aborted:
                self.arrivals.append(self._partial)
            self._partial = None

    def outcomes(self) -> dict[int, DeliveryState | None]:
        """Return what was said of each message, by delivery-id."""
        self.hear()
        return {
            delivery_id: said.state
            for said in self.dispositions
            for delivery_id in range(said.first, (said.last or said.first) + 1)
        }

    def take(self) -> list[Arrival]:
        """Return what has arrived since the last call."""
        self.hear()
        taken, self.arrivals = self.arrivals, []
        return taken

    # -- the wire's owner

    def on_header(self, header: bytes) -> None:
        raise AssertionError(f"a header: {header!r}")

    def on_rest(self, octets: bytes) -> None:
        raise AssertionError(f"behind a header: {octets!r}")

    def on_frame(self, frame_type: int, channel: int, body: bytes) -> None:
        raise AssertionError(f"a frame that is not hot: {body!r}")

    def on_sender_disposition(
        self, session: Session, first: int, last: int, settled: bool, state: bytes
    ) -> None:
        raise AssertionError(f"settled by the sender: {first} to {last}")

    def on_violation(self, condition: str, description: str) -> None:
        raise AssertionError(f"{condition}: {description}")

    def on_session_violation(self, session: Session, condition: str, description: str) -> None:
        raise AssertionError(f"{condition}: {description}")

    def on_link_violation(self, link: object, condition: str, description: str) -> None:
        raise AssertionError(f"{condition}: {description}")

    def on_fault(self, error: Exception) -> None:
        raise error

    def on_lost(self, errno: int) -> None:
        self.lost.append(errno)
