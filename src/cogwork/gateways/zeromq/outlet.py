"""A door that messages go out by, and what waits for its credit."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from cogwork.dataplane.message.messages import Message
from cogwork.gateways.zeromq.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.plugin.door import Door

__all__ = ("Outlet",)


class Outlet:
    """Sends in order: what there is no credit for waits, and all that comes after it.

    Attributes:
        door: What it sends by; None while there is none.
    """

    def __init__(
        self,
        now_s: Callable[[], float] | None = None,
        on_over: Callable[[int], object] | None = None,
    ) -> None:
        """Start with no door yet, and nothing waits.

        Args:
            now_s: The monotonic clock; None where no message has a time to live.
            on_over: Called with the token of a message whose time was over before there was credit.
        """
        self.door: Door | None = None
        self._now_s = now_s
        self._on_over = on_over
        self._waiting: deque[tuple[bytes, int, float | None]] = deque()

    def __len__(self) -> int:
        """Count what waits."""
        return len(self._waiting)

    @property
    def size_bytes_max(self) -> int:
        """How large a message may be; 0 for any size, and until that is known."""
        return 0 if self.door is None else self.door.size_bytes_max

    def post(self, message: Message, token: int = 0) -> None:
        """Send a message, or have it wait.

        Args:
            message: With its address in `to`.
            token: Of its delivery; 0 wants no outcome.

        Raises:
            TooLarge: The mesh takes nothing of this size.
        """
        encoded = message.encode()
        size_bytes_max = self.size_bytes_max
        if size_bytes_max and len(encoded) > size_bytes_max:
            raise TooLarge(size_bytes_max)
        if self._waiting or not self._send(encoded, token):
            life_s = message.ttl_s
            dies_s = None
            if life_s is not None and self._now_s is not None:
                dies_s = self._now_s() + life_s
            self._waiting.append((encoded, token, dies_s))

    def go_on(self) -> bool:
        """Send what waits, as far as there is credit; return whether that was all.

        What waited has the less time to live; one whose time is over goes nowhere.
        """
        while self._waiting:
            encoded, token, dies_s = self._waiting[0]
            if dies_s is not None and self._now_s is not None:
                left_s = dies_s - self._now_s()
                if left_s <= 0:
                    self._waiting.popleft()
                    if token and self._on_over is not None:
                        self._on_over(token)
                    continue
                message = Message.decode(encoded)
                message.ttl_s = left_s
                encoded = message.encode()
            if not self._send(encoded, token):
                return False
            self._waiting.popleft()
        return True

    def _send(self, encoded: bytes, token: int) -> bool:
        return self.door is not None and self.door.post(encoded, token, is_settled=token == 0)

    def flush(self) -> None:
        """Have what was sent go on its way."""
        if self.door is not None:
            self.door.flush()

    def close(self) -> None:
        """Close the door."""
        door, self.door = self.door, None
        if door is not None:
            door.close()
