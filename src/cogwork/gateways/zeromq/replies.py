"""Replies to calls: they come to one address of the gateway's own, and are told apart by number."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.dataplane.message.messages import Message
from cogwork.gateways.zeromq.errors import Code
from cogwork.gateways.zeromq.translation import (
    CANCEL,
    END,
    HEARTBEAT,
    MORE,
    PART,
    body_for,
    error_header,
    header_of,
)
from cogwork.plugin.door import Code as Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.gateways.zeromq.asked import AskedStreams
    from cogwork.gateways.zeromq.calls import Call, Calls
    from cogwork.gateways.zeromq.served import ServedStreams
    from cogwork.plugin.door import Arrival, Door, Inlet

__all__ = ("Replies",)

log = logging.getLogger("cogwork")

OF_STREAMS, ABOUT_STREAMS = frozenset({PART, END, HEARTBEAT}), frozenset({MORE, CANCEL})
"""Subjects of what comes of a stream, and of what its caller says."""

WINDOW = 2000
"""Replies that may be on their way at once."""


class Replies:
    """The inlet of a dynamic address.

    Attributes:
        address: Where replies go; empty until it is known.
    """

    def __init__(
        self,
        calls: Calls,
        asked: AskedStreams,
        served: ServedStreams,
        on_address: Callable[[], None],
    ) -> None:
        """Start with no address yet.

        Args:
            calls: What replies are for.
            asked: What parts are for.
            served: What callers say of parts that they get.
            on_address: Called when it is known where replies go.
        """
        self._on_address = on_address
        self.address = ""
        self._calls = calls
        self._asked = asked
        self._served = served
        self._inlet: Inlet | None = None
        self._granted = WINDOW

    def open(self, door: Door) -> None:
        """Ask for an address."""
        self._inlet = door.attach(None, self, WINDOW)

    def on_attached(self, address: str) -> None:
        """Have an address."""
        self.address = address
        self._on_address()

    def on_closed(self, _reason: str) -> None:
        """Have none any more."""
        self.address = ""
        self._inlet = None

    def on_arrivals(self, arrivals: Sequence[Arrival]) -> None:
        """Hand replies to those who wait for them."""
        inlet = self._inlet
        if inlet is None:
            return
        for arrival in arrivals:
            try:
                self._take(arrival.message)
            except Exception:  # whatever it is, the other replies are still to come
                log.exception("gateway zeromq: cannot forward a reply")
            if not arrival.is_settled:
                inlet.settle(arrival.token, Outcome.ACCEPTED)
        self._granted -= len(arrivals)
        if self._granted <= WINDOW // 2:
            self._granted = WINDOW
            inlet.grant(WINDOW)

    def _take(self, encoded: bytes) -> None:
        try:
            message = Message.decode(encoded)
            subject = message.subject
            if subject in ABOUT_STREAMS:
                self._served.note(message)
                return
            if subject in OF_STREAMS and self._asked.take(message):
                return
            if subject == HEARTBEAT:
                self._calls.pass_beat(message.correlation_id)
                return
            call = self._calls.take(message.correlation_id)
        except (CogworkError, UnicodeDecodeError):
            call = None
        if call is None:
            return
        if call.on_end is not None:
            call.on_end(message)
        else:
            _pass_on(call, message)


def _pass_on(call: Call, message: Message) -> None:
    assert call.session is not None
    assert call.lane is not None
    try:
        failure = error_header(message)
        if failure is not None:
            call.session.send(call.lane, b"ERROR", {"id": call.id, **failure})
            return
        header = header_of(message, call.address)
        for key in ("to", "address", "ttl_s"):
            header.pop(key, None)
        raw, body = body_for(message, call.session.codec)
        if raw is not None:
            header["raw"] = raw
    except (CogworkError, ValueError, TypeError, RecursionError) as error:
        header = {"code": Code.FAILED.value, "text": f"the reply cannot be read: {error}"}
        call.session.send(call.lane, b"ERROR", {"id": call.id, **header})
        return
    call.session.send(call.lane, b"RESULT", {"id": call.id, **header}, body)
