"""What has arrived for a listener, between the loop's thread and the one that polls."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

from cogwork.oslo.green import original
from cogwork.oslo.waiter import new_waiter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.oslo.waiter import Waiter

__all__ = ("Mailbox",)

T = TypeVar("T")


class Mailbox(Generic[T]):
    """A queue that one side never waits at. Its bound is the credit of the links that fill it."""

    def __init__(self) -> None:
        """Is empty and open."""
        self._messages: deque[T] = deque()
        self._guard = original("threading").Lock()
        self._waiters: deque[Waiter] = deque()
        self._is_shut = False

    def put(self, messages: Iterable[T]) -> None:
        """Add what has arrived."""
        with self._guard:
            self._messages.extend(messages)
            waiter = self._waiters.popleft() if self._waiters else None
        if waiter is not None:
            waiter.wake()

    def take(self, timeout_s: float | None) -> T | None:
        """Return the next letter; None where none comes in time, or once it is shut and empty."""
        with self._guard:
            if self._messages:
                return self._messages.popleft()
            if self._is_shut:
                return None
            waiter = new_waiter()
            self._waiters.append(waiter)
        try:
            waiter.wait(timeout_s)
        finally:
            with self._guard:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
            waiter.close()
        with self._guard:
            return self._messages.popleft() if self._messages else None

    def shut(self) -> None:
        """Have nobody wait any more; what is there can still be taken."""
        with self._guard:
            self._is_shut = True
            waiters, self._waiters = list(self._waiters), deque()
        for waiter in waiters:
            waiter.wake()

    def empty(self) -> list[T]:
        """Take out all that is there."""
        with self._guard:
            messages, self._messages = list(self._messages), deque()
        return messages
