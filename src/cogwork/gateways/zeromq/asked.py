"""Replies in parts that clients have asked for: parts come in, room for more goes out.

Theory of operation. A stream is a call whose reply has many messages, all to the gateway's one
address. Each part says its place, so one that is missing is noticed. Whoever sends them learns by
notes how many the client has room for, and that it is there: the gateway repeats the last one for
as long as the client's session lives. Silence on either side ends a stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.dataplane.message.messages import Message
from cogwork.gateways.zeromq.calls import Deadlines
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
    body_for,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.gateways.zeromq.calls import Call, Calls
    from cogwork.gateways.zeromq.session import Session

__all__ = ("AskedStream", "AskedStreams")

NOTES = 3
"""Within the longest silence: two may be late."""


@dataclass(slots=True, eq=False)
class AskedStream:
    """What a call has more where its reply comes in parts.

    Attributes:
        silence_s: The longest silence of either side.
        credit: Parts that the client has room for, from the first one on.
        forget: Called when the call has ended.
        count: Parts that have come.
        server: Where whoever sends them hears of the client; empty until that is known.
    """

    silence_s: float
    credit: int
    forget: Callable[[], None]
    count: int = 0
    server: str = ""


class AskedStreams:
    """The streams of all clients, as callers."""

    def __init__(
        self,
        calls: Calls,
        post: Callable[[Message], None],
        say: Callable[[Message], bool],
        now_s: Callable[[], float],
    ) -> None:
        """Start with none.

        Args:
            calls: What is under way.
            post: Sends a message.
            say: Sends one that can be said again, unless others wait; returns whether it did.
            now_s: The monotonic clock.
        """
        self._calls = calls
        self._post = post
        self._say = say
        self._now_s = now_s
        self._open: dict[tuple[bytes, int | str], Call] = {}
        self._by_number: dict[int, Call] = {}
        self._due = Deadlines()
        self._unsaid: dict[int, Call] = {}

    def __len__(self) -> int:
        """Count them."""
        return len(self._open)

    def begin(self, call: Call, session: Session, silence_s: float, credit: int) -> None:
        """Make a stream of a call that has not begun.

        Raises:
            Fault: The client has a stream of this name.
        """
        key = (session.id, call.id)
        if key in self._open:
            raise Fault(Code.NOT_ALLOWED, f"id: a stream {call.id!r} is under way already")
        call.stream = AskedStream(silence_s, credit, lambda: self._forget(key, call.number))
        call.message.properties = {
            **call.message.properties,
            STREAM_S: silence_s,
            CREDIT: credit,
        }
        self._open[key] = call
        self._by_number[call.number] = call
        self._due.add(call.number, self._now_s() + silence_s / NOTES)

    def _forget(self, key: tuple[bytes, int | str], number: int) -> None:
        self._open.pop(key, None)
        self._by_number.pop(number, None)
        self._unsaid.pop(number, None)

    # -- what comes

    def take(self, message: Message) -> bool:
        """Take a part, the end, or a sign of life; return whether it is of a stream."""
        call = self._calls.find(message.correlation_id)
        if call is None or call.stream is None or call.session is None:
            return False
        stream = call.stream
        stream.server = message.reply_to or stream.server
        if call.number in self._unsaid:
            self._say_more(call)
        told = message.group_sequence
        if call.session.is_over:
            self._cancel(call)
        elif told is not None and told != stream.count & UINT_MAX:
            self._break(call, Code.IN_DOUBT, f"part {stream.count} of the reply was lost")
        elif message.subject == END:
            count = stream.count
            if self._calls.end(call):
                call.tell(b"END", {"id": call.id, "count": count})
        else:
            self._calls.renew(call, self._now_s() + stream.silence_s)
            if message.subject == HEARTBEAT:
                call.tell(b"BEAT", {"id": call.id})
            elif message.subject == PART:
                self._pass(call, stream, message)
        return True

    def _pass(self, call: Call, stream: AskedStream, message: Message) -> None:
        """Hand a part to the client."""
        session, lane = call.session, call.lane
        assert session is not None
        assert lane is not None
        header: dict[str, object] = {"id": call.id, "seq": stream.count}
        try:
            raw, body = body_for(message, session.codec)
        except (CogworkError, ValueError, TypeError, RecursionError) as error:
            self._break(call, Code.FAILED, f"part {stream.count} cannot be read: {error}")
            return
        if raw is not None:
            header["raw"] = raw
        stream.count += 1
        if not session.send(lane, b"PART", header, body):
            self._break(call, Code.BUSY, f"part {header['seq']} had no room to wait for the client")

    def _break(self, call: Call, code: Code, text: str) -> None:
        """End a stream for a reason, at both ends."""
        self._note(call, CANCEL)
        self._calls.fail(call, code, f"{call.address}: {text}")

    # -- what the client says

    def more(self, session: Session, request: int | str, credit: int) -> None:
        """Say how many parts there is room for by now; nothing where the stream has ended."""
        call = self._open.get((session.id, request))
        if call is not None and call.stream is not None:
            call.stream.credit = max(call.stream.credit, credit)
            self._say_more(call)

    def _say_more(self, call: Call) -> None:
        """Say what room there is now; what cannot be said yet is as soon as it can."""
        if self._note(call, MORE):
            self._unsaid.pop(call.number, None)
        else:
            self._unsaid[call.number] = call

    def say_more(self) -> None:
        """Say what could not be said before, of each stream what is true by now."""
        for call in list(self._unsaid.values()):
            self._say_more(call)

    def cancel(self, session: Session, request: int | str) -> None:
        """End a stream that the client does not want any more."""
        call = self._open.get((session.id, request))
        if call is not None:
            self._cancel(call)

    def _cancel(self, call: Call) -> None:
        self._note(call, CANCEL)
        self._calls.end(call)

    def _note(self, call: Call, subject: str) -> bool:
        """Tell whoever sends the parts something, where that is known; return whether it did."""
        stream = call.stream
        if stream is None or not stream.server:
            return False
        properties: dict[str, object] = {CREDIT: stream.credit} if subject == MORE else {}
        note = Message.value(None, subject=subject, properties=properties)
        note.to = stream.server
        note.reply_to = call.message.reply_to
        note.correlation_id = call.message.correlation_id
        if subject == MORE:
            return self._say(note)
        self._post(note)
        return True

    def tick(self, now_s: float) -> None:
        """Say of clients that they are there; end the streams of those who are not."""
        for number in self._due.take(now_s):
            call = self._by_number.get(number)
            if call is None or call.stream is None or call.session is None:
                continue
            if call.session.is_over:
                self._cancel(call)
            else:
                self._note(call, MORE)
                self._due.add(number, now_s + call.stream.silence_s / NOTES)
