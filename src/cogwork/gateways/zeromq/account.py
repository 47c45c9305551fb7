"""What the clients of one user have under way: by doors of that user's, with that user's rights.

Theory of operation. The container decides over permissions at the doors, as for any connection. So
clients of different users never share a door: what one of them posts, receives from, is answered or
looks up goes by a connection that has its user's identity, and nobody else's credit is used up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.gateways.zeromq.answers import Answers
from cogwork.gateways.zeromq.asked import AskedStreams
from cogwork.gateways.zeromq.calls import Calls
from cogwork.gateways.zeromq.errors import Code, Fault
from cogwork.gateways.zeromq.lookups import Lookups
from cogwork.gateways.zeromq.outlet import Outlet
from cogwork.gateways.zeromq.replies import Replies
from cogwork.gateways.zeromq.served import ServedStreams

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.dataplane.message.messages import Message
    from cogwork.plugin.door import Door, Sender
    from cogwork.plugin.gateway import GatewayContext

__all__ = ("Account",)

PATIENCE_S = 1.0
"""Doors open in a moment, unless the container still waits for those that it is linked with."""

HELD_MAX = 1000


class Account:
    """One user's part of a gateway.

    Attributes:
        user: Whose permissions hold; None is nobody's, which is possible while there are no users.
        calls: Calls and casts of its clients.
        answers: What its clients answer.
        asked: Replies in parts that its clients get.
        served: Replies in parts that its clients make.
        replies: Where replies to its clients come.
        lookups: What its clients can be looked up by, and look up.
    """

    def __init__(
        self,
        context: GatewayContext,
        user: str | None,
        *,
        flush_soon: Callable[[], None],
        on_starved: Callable[[], None],
        on_credit: Callable[[], None],
        on_closed: Callable[[Account], None],
    ) -> None:
        """Start with no door yet.

        Args:
            context: What the container gives.
            user: Whose permissions hold.
            flush_soon: Has all doors flushed before long.
            on_starved: Called when the mesh takes nothing of it.
            on_credit: Called when it does again.
            on_closed: Called when the container has closed its door.
        """
        self.user = user
        self._context = context
        self._on_starved = on_starved
        self._on_credit = on_credit
        self._on_closed = on_closed
        self.calls = Calls(self.post, self._is_served, context.now_s, context.token)
        self.answers = Answers(self._open_door, flush_soon, self._on_room_for_answers)
        post, say = self.answers.post, self.answers.say
        self.asked = AskedStreams(self.calls, post, say, context.now_s)
        self.served = ServedStreams(post, say, lambda: self.replies.address, context.now_s)
        self.replies = Replies(self.calls, self.asked, self.served, self._go_on)
        self.lookups = Lookups(self)
        self._requests = Outlet(context.now_s, self.calls.expire)
        self._is_closed = False
        self._held: list[Callable[[], None]] = []
        self._patient_until_s = 0.0

    # -- life

    def open(self) -> None:
        """Open its doors."""
        self._patient_until_s = self.now_s + PATIENCE_S
        self._open()
        self.answers.open()

    def holds(self, again: Callable[[], None]) -> bool:
        """Keep a client's first word until its doors are open: it would only be told to wait.

        Args:
            again: Hears that word again.

        Returns:
            Whether that is done; it is not where they take too long.
        """
        if self.replies.address or self.now_s >= self._patient_until_s:
            return False
        if len(self._held) >= HELD_MAX:
            return False
        self._held.append(again)
        return True

    def _go_on(self) -> None:
        held, self._held = self._held, []
        for again in held:
            again()

    def _open(self) -> None:
        self._requests.door = self._open_door(self)
        self.replies.open(self.door)

    def _open_door(self, sender: Sender) -> Door:
        return self._context.open_door(sender, self.user)

    def tick(self, now_s: float) -> None:
        """Let time pass: deadlines, silence."""
        if self._held and now_s >= self._patient_until_s:
            self._go_on()
        self.asked.tick(now_s)
        self.served.tick(now_s)
        self.calls.tick(now_s)

    def flush(self) -> None:
        """End a batch."""
        self.answers.flush()  # first: a request is settled after its answer has gone
        self._requests.flush()

    @property
    def is_drained(self) -> bool:
        """Whether nothing is under way."""
        return not (self.calls or self._requests or self.answers)

    def close(self) -> None:
        """Close its doors."""
        self._is_closed = True
        self._requests.close()
        self.answers.close()

    # -- what goes into the mesh

    @property
    def door(self) -> Door:
        """The way into the container."""
        assert self._requests.door is not None
        return self._requests.door

    @property
    def now_s(self) -> float:
        """The monotonic clock."""
        return self._context.now_s()

    def post(self, message: Message, token: int = 0) -> None:
        """Send a message, or have it wait for credit.

        Args:
            message: With its address in `to`.
            token: Of its delivery; 0 wants no outcome.

        Raises:
            TooLarge: The mesh takes nothing of this size.
        """
        was_waiting = bool(self._requests)
        self._requests.post(message, token)
        if self._requests and not was_waiting:
            self._on_starved()

    @property
    def size_bytes_max(self) -> int:
        """How large a message into the mesh may be; 0 for any size, and until that is known."""
        return self._requests.size_bytes_max

    def _is_served(self, address: str) -> bool:
        door = self._requests.door
        return door is not None and door.is_served(address)

    def demand_room(self) -> None:
        """Refuse what is new while something waits for credit.

        Raises:
            Fault: That is so.
        """
        if self._requests or self.answers:
            raise Fault(Code.BUSY, "the mesh takes nothing at present: try again in a moment")

    # -- what the doors tell

    def on_credit(self) -> None:
        """Send what waited, and have the sockets read again."""
        if self._requests.go_on():
            self._on_credit()

    def on_closed(self) -> None:
        """Somebody has closed the connection: clients have been told, and may register again.

        What waited for credit goes by the next one.
        """
        if self._is_closed:
            return
        self._on_closed(self)
        if not self._is_closed:
            self._open()
            self._requests.go_on()  # there is no credit yet: so the door knows it is waited for

    def on_outcome(self, token: int, code: int, reason: str) -> None:
        """A message has its outcome."""
        self.calls.on_outcome(token, code, reason)

    def _on_room_for_answers(self) -> None:
        self.asked.say_more()
