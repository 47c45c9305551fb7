"""What a client receives from one address: deliveries, and their settlement.

Theory of operation. A registration is a link of its own on its address, with credit for as many
messages as the client takes at once: so whoever has credit gets the next one, wherever in the mesh
it comes from. The client answers each delivery, and that gives credit back. A subscriber of PubSub
answers nothing: its messages are settled when ZeroMQ has taken them, and credit waits while it does
not.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp.errors import CogworkError
from cogwork.dataplane.message.messages import Message
from cogwork.gateways.zeromq.errors import Code
from cogwork.gateways.zeromq.kind import Kind
from cogwork.gateways.zeromq.served import stream_of
from cogwork.gateways.zeromq.translation import CANCEL, body_for, header_of
from cogwork.plugin.door import Code as Outcome
from cogwork.router.patterns import is_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.amqp.message import MessageId
    from cogwork.gateways.zeromq.account import Account
    from cogwork.gateways.zeromq.lane import Lane
    from cogwork.gateways.zeromq.served import ServedStreams
    from cogwork.gateways.zeromq.session import Session
    from cogwork.plugin.door import Arrival, Door, Inlet

__all__ = ("Delivery", "Registration")

log = logging.getLogger("cogwork")


class Delivery(NamedTuple):
    """A message that a client has, and has not answered.

    Attributes:
        token: Of the link's delivery.
        is_settled: Whether nobody waits for its outcome.
        reply_to: Where a reply goes; None wants none.
        correlation_id: What a reply says it is for.
        content_type: What the request was written in.
        header: Of the request, to be sent again where the client's connection breaks.
        body: Of the request.
        stream: The longest silence and the room for parts, where the reply is to come in parts.
    """

    token: int
    is_settled: bool
    reply_to: str | None
    correlation_id: MessageId | None
    content_type: str | None
    header: dict[str, object]
    body: bytes
    stream: tuple[float, int] | None


class Registration:
    """One session's link on one address.

    Attributes:
        address: Where it receives from.
        name: What the client calls that.
        endpoint: Where the client itself listens; None where it does not.
        public_key: Its CURVE key there; None without.
        delivered: Counts what was handed to the client.
    """

    def __init__(
        self,
        session: Session,
        lane: Lane,
        name: str,
        address: str,
        *,
        window: int,
        endpoint: str | None,
        public_key: str | None,
        id: int | str,  # noqa: A002  # the frame's name for it
        streams: ServedStreams,
        on_close: Callable[[Registration], None],
    ) -> None:
        """Is not attached yet.

        Args:
            session: Whose it is.
            lane: By which the client has its messages.
            name: What the client calls the address.
            address: Where it receives from.
            window: Messages that the client takes at once.
            endpoint: Where the client itself listens.
            public_key: Its CURVE key there.
            id: The client's name for its request, until that is answered.
            streams: Replies in parts that are under way.
            on_close: Called when it has ended, whoever ended it.
        """
        self.address = address
        self.name = name
        self.endpoint = endpoint
        self.public_key = public_key
        self.delivered = 0
        self._is_of_many = is_pattern(address)
        self._session = session
        self._lane = lane
        self._window = window
        self._id: int | str | None = id
        self._on_close = on_close
        self._streams = streams
        self._inlet: Inlet | None = None
        self._open: dict[int, Delivery] = {}
        self._granted = window
        self._is_answered = lane.kind is not Kind.PUBSUB
        self._is_held = False
        self._is_held_back = False

    def open(self, door: Door) -> None:
        """Attach."""
        is_peer = self._lane.kind is Kind.PEER2PEER
        self._inlet = door.attach(self.address, self, self._window, is_exclusive=is_peer)

    @property
    def outstanding(self) -> int:
        """Counts the deliveries that the client has and has not answered."""
        return len(self._open)

    @property
    def account(self) -> Account:
        """Of the session's user."""
        return self._session.account

    # -- what comes by the link

    def on_attached(self, address: str) -> None:
        """Tell the client that it is registered."""
        self._answer(b"DONE", {"address": address})

    def on_closed(self, reason: str) -> None:
        """Tell the client that it is not, or not any more."""
        self._session.registrations.pop((self._lane.kind, self.address), None)
        self._forget_all()
        self._inlet = None
        self._on_close(self)
        header: dict[str, object] = {"to": self.name, "text": f"{self.address}: {reason}"}
        if self._id is not None:
            self._answer(b"ERROR", {"code": Code.NOT_ALLOWED.value, **header})
        elif not self._session.is_over:
            self._session.send(self._lane, b"ERROR", {"code": Code.DETACHED.value, **header})

    def _answer(self, verb: bytes, header: dict[str, object]) -> None:
        request, self._id = self._id, None
        if request is not None and not self._session.is_over:
            self._session.send(self._lane, verb, {"id": request, **header})

    def on_arrivals(self, arrivals: Sequence[Arrival]) -> None:
        """Hand messages to the client."""
        self._granted -= len(arrivals)
        for arrival in arrivals:
            try:
                self._deliver(arrival)
            except (CogworkError, ValueError, TypeError, RecursionError):
                self._settle(arrival.token, arrival.is_settled, Outcome.REJECTED)
            except Exception:  # whatever it is, the others of the batch are still to come
                log.exception("gateway zeromq: cannot deliver a message to a client")
                self._settle(arrival.token, arrival.is_settled, Outcome.REJECTED)
        self.top_up()

    def _deliver(self, arrival: Arrival) -> None:
        message = Message.decode(arrival.message)
        session = self._session
        if message.subject == CANCEL and message.reply_to is not None:
            self._pass_cancel(message)
            self._settle(arrival.token, arrival.is_settled, Outcome.ACCEPTED)
            return
        header = header_of(message, self.name)
        if not self._is_of_many:  # the message need not say where its link leads
            header.setdefault("address", self.address)
        raw, body = body_for(message, session.codec)
        if raw is not None:
            header["raw"] = raw
        if self._is_answered:
            session.number += 1
            number = session.number
            header["id"] = number
            header["reply"] = message.reply_to is not None
            stream = stream_of(message)
            if stream is not None:
                header["stream_s"], header["credit"] = stream
            self._open[number] = Delivery(
                arrival.token,
                arrival.is_settled,
                message.reply_to,
                _name_of(message),
                message.content_type,
                header,
                body,
                stream,
            )
        if session.send(self._lane, b"REQUEST", header, body):
            self.delivered += 1
            if self._is_answered:
                self._streams.begin(self, session.number, self._open[session.number])
            else:
                self._settle(arrival.token, arrival.is_settled, Outcome.ACCEPTED)
            return
        if self._is_answered:
            del self._open[session.number]
        self._settle(arrival.token, arrival.is_settled, Outcome.RELEASED)

    def send_again(self) -> None:
        """Send what the client has not answered, as its connection may have broken with it."""
        for delivery in self._open.values():
            header = {**delivery.header, "again": True}
            self._session.send(self._lane, b"REQUEST", header, delivery.body)

    def _pass_cancel(self, message: Message) -> None:
        """Tell the client that nobody waits for its reply any more, if it has that call."""
        if self._streams.note(message):
            return
        for number, delivery in self._open.items():
            is_same = delivery.correlation_id == message.correlation_id
            if is_same and delivery.reply_to == message.reply_to:
                self._session.send(self._lane, b"CANCEL", {"id": number})
                return

    def _settle(self, token: int, is_settled: bool, code: Outcome) -> None:
        if not is_settled and self._inlet is not None:
            self._inlet.settle(token, code)

    # -- what the client says

    def take(self, number: int) -> Delivery | None:
        """Return a delivery that the client answers; None where it has none of this number."""
        return self._open.get(number)

    def finish(self, number: int, code: Outcome) -> None:
        """Settle a delivery, and gives credit back."""
        delivery = self._open.pop(number, None)
        if delivery is not None:
            self._streams.end(self, number)
            self._settle(delivery.token, delivery.is_settled, code)
            self.top_up()

    def top_up(self) -> None:
        """Give credit again once half of the window is used up, unless the client is slow."""
        if self._inlet is None or self._is_held_back or not self._session.has_room:
            self._is_held = True
            return
        self._is_held = False
        free = self._window - len(self._open)
        if self._granted <= free // 2:
            self._granted = free
            self._inlet.grant(free)

    def hold_back(self) -> None:
        """Give no credit: what comes of it could not be sent."""
        self._is_held_back = True

    def go_on(self) -> None:
        """Give credit again."""
        self._is_held_back = False
        self.top_up()

    @property
    def is_held(self) -> bool:
        """Whether it gets no credit because its client takes nothing."""
        return self._is_held

    def close(self) -> None:
        """Detach; what the client has not answered is in doubt."""
        inlet, self._inlet = self._inlet, None
        if inlet is not None:
            for delivery in self._open.values():
                if not delivery.is_settled:
                    inlet.settle(delivery.token, Outcome.MODIFIED)
            inlet.close()
            self._on_close(self)
        self._forget_all()

    def _forget_all(self) -> None:
        for number in self._open:
            self._streams.end(self, number)
        self._open.clear()

    def tell(self, verb: bytes, header: dict[str, object]) -> None:
        """Tell the client something of a request that it has."""
        self._session.send(self._lane, verb, header)


def _name_of(message: Message) -> MessageId | None:
    """Return what a reply says it is for."""
    return message.message_id if message.correlation_id is None else message.correlation_id
