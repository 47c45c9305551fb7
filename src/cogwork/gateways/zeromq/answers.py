"""What clients answer, and notes about replies in parts: they go by a door of their own.

Theory of operation. A request holds credit of the door that it went by until it is settled, and
what settles it is a service's answer. So answers, and the notes without which a service would not
go on with its parts, have other credit, and never stand behind requests. A service whose answers
wait all the same is asked nothing more until they have gone, so no more of them wait than it had
been asked for.

No circle of waiting closes, as all waiting leads one way. Requests wait for services; services for
nothing of the mesh's but credit for answers; and that comes back as answers are taken: by the
gateway itself, which takes whatever comes to its one address and waits for nothing to do so, or by
whom else a request names in its reply-to. (A reply-to that names a service's address makes answers
wait for services: circles of such addresses are their maker's.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.gateways.zeromq.outlet import Outlet

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.dataplane.message.messages import Message
    from cogwork.gateways.zeromq.registration import Registration
    from cogwork.plugin.door import Door, Sender

__all__ = ("Answers",)


class Answers:
    """The door that answers go by, and what waits for its credit."""

    def __init__(
        self,
        open_door: Callable[[Sender], Door],
        flush_soon: Callable[[], None],
        on_credit: Callable[[], None],
    ) -> None:
        """Start with no door yet.

        Args:
            open_door: Opens one.
            flush_soon: Has all doors flushed before long: not only clients have answers sent.
            on_credit: Called when nothing waits any more.
        """
        self._open_door = open_door
        self._flush_soon = flush_soon
        self._on_credit = on_credit
        self._outlet = Outlet()
        self._held_back: dict[Registration, None] = {}
        self._is_closed = False

    def __len__(self) -> int:
        """Count what waits for credit."""
        return len(self._outlet)

    def open(self) -> None:
        """Open the door."""
        self._outlet.door = self._open_door(self)

    @property
    def size_bytes_max(self) -> int:
        """How large a message may be; 0 for any size, and until that is known."""
        return self._outlet.size_bytes_max

    def post(self, message: Message) -> None:
        """Send a message, or have it wait for credit.

        Raises:
            TooLarge: The mesh takes nothing of this size.
        """
        self._outlet.post(message)
        self._flush_soon()

    def say(self, message: Message) -> bool:
        """Send what can be said again, unless something waits; return whether it was said."""
        if self._outlet:
            return False
        self.post(message)
        return True

    def give(self, registration: Registration, send: Callable[[], None]) -> None:
        """Have what a client answers sent; while that waits, it is asked nothing more."""
        send()
        if self._outlet:
            registration.hold_back()
            self._held_back[registration] = None

    def flush(self) -> None:
        """Have all that was sent go on its way."""
        self._outlet.flush()

    def close(self) -> None:
        """Close the door."""
        self._is_closed = True
        self._outlet.close()

    # -- what the door tells

    def on_outcome(self, token: int, code: int, reason: str) -> None:
        """Never told: all is sent settled."""

    def on_credit(self) -> None:
        """Send what waited, and lets clients be asked again."""
        if not self._outlet.go_on():
            return
        held_back, self._held_back = self._held_back, {}
        for registration in held_back:
            registration.go_on()
        self._on_credit()
        self._flush_soon()

    def on_closed(self) -> None:
        """Somebody has closed the connection: what waited for credit goes by the next one."""
        if not self._is_closed:
            self.open()
            self._outlet.go_on()  # there is no credit yet: so the door knows that it is waited for
