"""A door that messages go out by, and what waits for its credit."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cogwork.dataplane.message.messages import Message
    from cogwork.spi.door import Door

__all__ = ("Outlet",)


class Outlet:
    """Sends in order: what there is no credit for waits, and all that comes after it.

    Attributes:
        door: What it sends by; None while there is none.
    """

    def __init__(self) -> None:
        """Has no door yet, and nothing waits."""
        self.door: Door | None = None
        self._waiting: deque[tuple[bytes, int]] = deque()

    def __len__(self) -> int:
        """Counts what waits."""
        return len(self._waiting)

    def post(self, message: Message, token: int = 0) -> None:
        """Sends a message, or has it wait.

        Args:
            message: With its address in `to`.
            token: Of its delivery; 0 wants no outcome.
        """
        encoded = message.encode()
        if self._waiting or not self._send(encoded, token):
            self._waiting.append((encoded, token))

    def go_on(self) -> bool:
        """Sends what waits, as far as there is credit; returns whether that was all."""
        while self._waiting:
            if not self._send(*self._waiting[0]):
                return False
            self._waiting.popleft()
        return True

    def _send(self, encoded: bytes, token: int) -> bool:
        return self.door is not None and self.door.post(encoded, token, is_settled=token == 0)

    def flush(self) -> None:
        """Has what was sent go on its way."""
        if self.door is not None:
            self.door.flush()

    def close(self) -> None:
        """Closes the door."""
        door, self.door = self.door, None
        if door is not None:
            door.close()
