"""Replies in parts that clients give: parts go out, and what callers say of them comes in.

Theory of operation. The caller hears at once, by a heartbeat, where it is to say what it has room
for: at the gateway's one address. A client never gets further ahead than that, and a caller that
has been silent for too long has its stream cancelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cogwork.amqp.types import UInt
from cogwork.dataplane.message.messages import Message
from cogwork.gateways.zeromq.errors import Code, Fault
from cogwork.gateways.zeromq.translation import (
    CANCEL,
    CREDIT,
    END,
    HEARTBEAT,
    MORE,
    PART,
    STREAM_S,
    UINT_MAX,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.message import MessageId
    from cogwork.gateways.zeromq.registration import Delivery, Registration

__all__ = ("CREDIT_MAX", "ServedStreams", "stream_of")

CREDIT_MAX = 1000
"""Parts sent ahead at most, whatever a caller says that it has room for."""

SILENCE_S_LEAST, SILENCE_S_MOST = 0.01, 1e6
"""Times that make sense."""


@dataclass(slots=True, eq=False)
class ServedStream:
    """One reply in parts.

    Attributes:
        registration: Whose client gives it.
        number: Of the REQUEST.
        reply_to: Where parts go.
        correlation_id: What they say they are for.
        silence_s: The longest silence of the caller.
        credit: Parts that it has room for, from the first one on.
        due_s: When its silence is too long.
        sent: Parts that have gone.
        is_over: Whether the caller wants no more.
    """

    registration: Registration
    number: int
    reply_to: str
    correlation_id: MessageId | None
    silence_s: float
    credit: int
    due_s: float
    sent: int = 0
    is_over: bool = False


class ServedStreams:
    """The streams of all clients, as services."""

    def __init__(
        self,
        post: Callable[[Message], None],
        say: Callable[[Message], bool],
        address: Callable[[], str],
        now_s: Callable[[], float],
    ) -> None:
        """Start with none.

        Args:
            post: Sends a message.
            say: Sends one that is said again before long, unless others wait.
            address: Where callers say what they have room for.
            now_s: The monotonic clock.
        """
        self._post = post
        self._say = say
        self._address = address
        self._now_s = now_s
        self._open: dict[tuple[Registration, int], ServedStream] = {}
        self._by_caller: dict[tuple[str, object], ServedStream] = {}

    def __len__(self) -> int:
        """Count them."""
        return len(self._open)

    # -- life

    def begin(self, registration: Registration, number: int, delivery: Delivery) -> None:
        """Note that a request wants its reply in parts, and tell its caller where to."""
        asked = delivery.stream
        if asked is None or delivery.reply_to is None:
            return
        silence_s, credit = asked
        stream = ServedStream(
            registration,
            number,
            delivery.reply_to,
            delivery.correlation_id,
            silence_s,
            credit,
            self._now_s() + silence_s,
        )
        self._open[registration, number] = stream
        self._by_caller[stream.reply_to, stream.correlation_id] = stream
        self._send(stream, HEARTBEAT)

    def end(self, registration: Registration, number: int) -> None:
        """Forget a request that was answered."""
        stream = self._open.pop((registration, number), None)
        if stream is not None:
            self._by_caller.pop((stream.reply_to, stream.correlation_id), None)

    def find(self, registration: Registration, number: int) -> ServedStream:
        """Return a stream.

        Raises:
            Fault: The request's caller takes no parts.
        """
        stream = self._open.get((registration, number))
        if stream is None:
            raise Fault(Code.NOT_ALLOWED, "the request had no stream_s: REPLY is expected")
        return stream

    # -- what the client says

    def part(self, stream: ServedStream, message: Message) -> None:
        """Send a part.

        Raises:
            Fault: The caller has no room for it.
        """
        if stream.is_over:
            return
        if stream.sent >= stream.credit:
            text = f"the caller has room for {stream.credit} parts by now: wait for MORE"
            raise Fault(Code.BUSY, text)
        self._send(stream, PART, message)
        stream.sent += 1

    def finish(self, stream: ServedStream) -> None:
        """Say that there are no more parts."""
        if not stream.is_over:
            self._send(stream, END)

    def beat(self, stream: ServedStream) -> None:
        """Say that the client is at work."""
        if not stream.is_over:
            self._send(stream, HEARTBEAT)

    def _send(self, stream: ServedStream, subject: str, part: Message | None = None) -> None:
        message = Message.value(None) if part is None else part
        message.subject = subject
        message.group_sequence = UInt(stream.sent & UINT_MAX)
        message.reply_to = self._address() or None
        message.to = stream.reply_to
        message.correlation_id = stream.correlation_id
        (self._say if subject == HEARTBEAT else self._post)(message)

    # -- what the caller says

    def note(self, message: Message) -> bool:
        """Take what a caller says of a stream of its own; return whether it has one."""
        stream = self._by_caller.get((message.reply_to or "", message.correlation_id))
        if stream is None:
            return False
        if stream.is_over:
            return True
        if message.subject == CANCEL:
            self._cancel(stream)
            return True
        stream.due_s = self._now_s() + stream.silence_s
        credit = message.properties.get(CREDIT, 0)
        if isinstance(credit, int) and credit > stream.credit:
            stream.credit = min(credit, stream.sent + CREDIT_MAX)
            stream.registration.tell(b"MORE", {"id": stream.number, "credit": stream.credit})
        return True

    def _cancel(self, stream: ServedStream) -> None:
        stream.is_over = True
        stream.registration.tell(b"CANCEL", {"id": stream.number})

    def tick(self, now_s: float) -> None:
        """Cancel what nobody seems to wait for."""
        for stream in [each for each in self._open.values() if each.due_s < now_s]:
            if not stream.is_over:
                self._cancel(stream)


def stream_of(message: Message) -> tuple[float, int] | None:
    """Read what a request says of parts: the longest silence, and room; None wants none."""
    if message.subject in (MORE, CANCEL) or message.reply_to is None:
        return None
    silence_s, credit = message.properties.get(STREAM_S), message.properties.get(CREDIT, 0)
    if not isinstance(silence_s, (int, float)) or not isinstance(credit, int):
        return None
    if not SILENCE_S_LEAST <= silence_s <= SILENCE_S_MOST:
        return None
    return float(silence_s), min(max(credit, 0), CREDIT_MAX)
