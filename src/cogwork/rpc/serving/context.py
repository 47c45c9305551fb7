"""What a method may want to know of the call it runs for."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.dataplane.message.messages import Message

__all__ = ("CURRENT", "CallContext", "current_call")

CURRENT: ContextVar[CallContext] = ContextVar("cogwork_current_call")


class CallContext:
    """A call, as the method that runs for it sees it.

    Attributes:
        request: The message, with user-id, subject and application-properties.
    """

    __slots__ = ("_cancelled", "_clock", "_deadline_s", "request")

    def __init__(
        self, request: Message, deadline_s: float | None, clock: Callable[[], float]
    ) -> None:
        """Initialize it; it belongs to one request.

        Args:
            request: The message.
            deadline_s: How long the caller waits, by the clock; None for ever.
            clock: Returns seconds.
        """
        self.request = request
        self._deadline_s = deadline_s
        self._clock = clock
        self._cancelled = False

    @property
    def remaining_s(self) -> float | None:
        """How long the caller still waits, in seconds; None for ever."""
        if self._deadline_s is None:
            return None
        return max(self._deadline_s - self._clock(), 0.0)

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for a reply any more; a method in a thread has to look."""
        return self._cancelled or self.remaining_s == 0

    def cancel(self) -> None:
        """Tell the method that nobody waits."""
        self._cancelled = True


def current_call() -> CallContext:
    """Return the call for which the running method works.

    Raises:
        LookupError: None is: this is no method of a service.
    """
    return CURRENT.get()
