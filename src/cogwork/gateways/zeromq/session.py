"""A client as the gateway knows it: by an id of the gateway's own, whatever its sockets are.

Theory of operation. HELLO makes a session; its id comes with every message, on any of the three
sockets. ZeroMQ's name for the sender's connection is no more than where answers go at present: it
is learned anew from every message, so a client that reconnects goes on as if nothing had happened.
What cannot be sent at the moment waits, within bounds. What was sent into a connection that broke
is lost without a word; so when a client comes by another one, answers that followed its last word
are sent again, and requests that it has not answered.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from cogwork.gateways.zeromq.frames import MAGIC
from cogwork.gateways.zeromq.kind import Kind
from cogwork.gateways.zeromq.lane import Sent

if TYPE_CHECKING:
    from cogwork.gateways.zeromq.account import Account
    from cogwork.gateways.zeromq.codec import Codec
    from cogwork.gateways.zeromq.lane import Lane
    from cogwork.gateways.zeromq.registration import Registration

__all__ = ("Session",)

WAITING_MAX = 1000
"""Messages that wait for a client that is away or slow; those beyond are dropped, and counted."""

UNCONFIRMED_MAX = 100
"""Answers after a client's last word that are kept to be sent again."""

UNCONFIRMED_BYTES_MAX = 64 * 1024
"""Larger ones are not kept."""

ANSWERS = frozenset({b"RESULT", b"DONE", b"ERROR", b"FOUND"})
"""What a client waits for."""

WAITING_BYTES_MAX = 16 * 1024 * 1024
"""The same in bytes."""


class Session:
    """One client.

    Attributes:
        id: Its secret name.
        account: Of its user.
        name: What it calls itself, for people.
        codec: What it is answered in.
        lease_s: How long it is kept without a word.
        heard_s: When the last word came.
        under_way: Calls and casts that have no answer yet.
        registrations: What it receives from, by kind and address.
        number: Of the last message that it was sent.
        dropped: Counts messages to it that had no room.
        is_over: Whether it has been ended.
    """

    __slots__ = (
        "_routes",
        "_slow",
        "_unconfirmed",
        "_waiting",
        "_waiting_bytes",
        "account",
        "codec",
        "dropped",
        "heard_s",
        "id",
        "is_over",
        "lease_s",
        "name",
        "number",
        "registrations",
        "under_way",
    )

    def __init__(
        self,
        session_id: bytes,
        account: Account,
        codec: Codec,
        *,
        lease_s: float,
        name: str,
        slow: set[Session],
    ) -> None:
        """Start a session.

        Args:
            session_id: Its secret name.
            account: Of its user.
            codec: What it is answered in.
            lease_s: How long it is kept without a word.
            name: What it calls itself.
            slow: Those for whom something waits.
        """
        self.id = session_id
        self.account = account
        self.name = name
        self.codec = codec
        self.lease_s = lease_s
        self.heard_s = 0.0
        self.under_way = 0
        self.number = 0
        self.registrations: dict[tuple[str, str], Registration] = {}
        self.dropped = 0
        self.is_over = False
        self._routes: dict[str, bytes] = {}
        self._waiting: deque[tuple[Lane, list[bytes]]] = deque()
        self._waiting_bytes = 0
        self._slow = slow
        self._unconfirmed: list[tuple[Lane, list[bytes]]] = []

    def heard(self, lane: Lane, route: bytes, now_s: float) -> None:
        """Take note of a word, and of where answers go."""
        self.heard_s = now_s
        before = self._routes.get(lane.kind)
        unconfirmed, self._unconfirmed = self._unconfirmed, []
        if before != route:
            self._routes[lane.kind] = route
            if before is not None:
                self._send_again(lane, unconfirmed)
        if self._waiting:
            self.send_waiting()

    def _send_again(self, lane: Lane, unconfirmed: list[tuple[Lane, list[bytes]]]) -> None:
        """Send what may have been lost with the connection that there was before."""
        open_requests = [
            each for (kind, _), each in self.registrations.items() if kind == lane.kind
        ]
        self._waiting = deque(
            (each, parts)
            for each, parts in self._waiting
            if each is not lane or parts[2] != b"REQUEST" or lane.kind is Kind.PUBSUB
        )
        for each, parts in unconfirmed:
            if each is lane:
                self._put(lane, parts)
        for registration in open_requests:
            registration.send_again()

    @property
    def has_room(self) -> bool:
        """Whether nothing waits for the client."""
        return not self._waiting

    def send(
        self, lane: Lane, verb: bytes, header: dict[str, object], body: bytes | None = None
    ) -> bool:
        """Send a message, now or when the client can take it; False where it was dropped."""
        parts = [b"", MAGIC, verb, self.id, self.codec.encode_header(header)]
        if body is not None:
            parts.append(body)
        return self._put(lane, parts)

    def _put(self, lane: Lane, parts: list[bytes]) -> bool:
        if not self._waiting and self._pass(lane, parts):
            return True
        size_bytes = sum(map(len, parts))
        if len(self._waiting) >= WAITING_MAX or (
            self._waiting_bytes + size_bytes > WAITING_BYTES_MAX
        ):
            self.dropped += 1
            return False
        self._waiting.append((lane, parts))
        self._slow.add(self)
        self._waiting_bytes += size_bytes
        return True

    def _pass(self, lane: Lane, parts: list[bytes]) -> bool:
        route = self._routes.get(lane.kind)
        if route is None:
            return False
        parts[0] = route
        if lane.send(parts) is not Sent.YES:
            return False
        is_kept = parts[2] in ANSWERS and len(parts[-1]) <= UNCONFIRMED_BYTES_MAX
        if is_kept and len(self._unconfirmed) < UNCONFIRMED_MAX:
            self._unconfirmed.append((lane, parts))
        return True

    def send_waiting(self) -> bool:
        """Send what waits, as far as it can be sent; return whether that was all."""
        while self._waiting:
            lane, parts = self._waiting[0]
            if not self._pass(lane, parts):
                return False
            self._waiting.popleft()
            self._waiting_bytes -= sum(map(len, parts[1:]))
        self._waiting_bytes = 0
        self._slow.discard(self)
        for registration in self.registrations.values():
            registration.top_up()
        return True

    def end(self) -> None:
        """Forget everything."""
        self.is_over = True
        self._waiting.clear()
        for registration in list(self.registrations.values()):
            registration.close()
        self.registrations.clear()
